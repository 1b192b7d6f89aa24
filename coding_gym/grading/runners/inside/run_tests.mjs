// Runs test files one after the other and says how each of their tests ended, a line of JSON after
// a secret. Standard input holds the secret, options of node for the tests, then the files, a line
// each. The tests run in processes of their own, which never hear of the secret.
import { readFileSync, writeSync } from "node:fs";
import { relative } from "node:path";
import { run } from "node:test";

const MAX_MESSAGE_CHARS = 300;
const lines = readFileSync(0, "utf8").split("\n");
const secret = lines.shift();
process.env.NODE_OPTIONS = lines.shift();

function send(kind, name, how, message) {
  const record = [kind, name, how, String(message).slice(0, MAX_MESSAGE_CHARS)];
  let rest = Buffer.from(`\n${secret} ${JSON.stringify(record)}\n`);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(1, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
    }
  }
}

function said(data) {
  const error = data.details?.error;
  return error?.cause?.message ?? error?.cause ?? error?.message ?? "";
}

function outcome(type, data) {
  if (data.skip !== undefined || data.todo !== undefined) return "skipped";
  return type === "test:pass" ? "passed" : "failed";
}

// Whether an event is about the process of a file, which node reports like a test where it fails.
function isFile(name, file) {
  return name === file || (name.startsWith("/") && relative(process.cwd(), name) === file);
}

async function runFile(file) {
  const names = []; // of the tests around the one that starts, and of itself
  for await (const { type, data } of run({ files: [file], concurrency: 1 })) {
    if (type === "test:start") {
      names.length = data.nesting;
      names.push(data.name);
    } else if (type === "test:pass" || type === "test:fail") {
      const name = [...names.slice(0, data.nesting), data.name].join(" > ");
      if (isFile(name, file) || data.details?.type === "suite") {
        if (type === "test:fail") send("class", file, "error", said(data));
      } else {
        send("test", `${file}::${name}`, outcome(type, data), said(data));
      }
    }
  }
}

send("ready", "", "", "");
for (const file of lines.filter((line) => line !== "")) {
  await runFile(file);
}
send("end", "", "", "");
process.exit(0);
