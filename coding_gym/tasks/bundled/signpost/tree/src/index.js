export { compile } from "./pattern.js";
export { formatQuery, parseQuery } from "./query.js";
export { Router } from "./router.js";
