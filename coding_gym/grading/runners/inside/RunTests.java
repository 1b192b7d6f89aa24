import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs test classes and says how each of their tests ended, a line of JSON after a secret.
 *
 * <p>Standard input holds the secret, then the names of the classes, a line each. It keeps to Java 8.
 */
final class RunTests extends RunListener {
    private static final int MAX_MESSAGE_CHARS = 300;

    private final FileOutputStream output = new FileOutputStream(FileDescriptor.out);
    private final String secret;
    private String status = "passed";
    private String message = "";

    private RunTests(String secret) {
        this.secret = secret;
    }

    public static void main(String[] arguments) throws IOException {
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        RunTests reporter = new RunTests(input.readLine());
        reporter.send("ready", "", "", "");
        for (String name = input.readLine(); name != null; name = input.readLine()) {
            reporter.run(name);
        }
        reporter.send("end", "", "", "");
        Runtime.getRuntime().halt(0);
    }

    private void run(String name) {
        try {
            JUnitCore core = new JUnitCore();
            core.addListener(this);
            core.run(Request.aClass(Class.forName(name, false, RunTests.class.getClassLoader())));
        } catch (ClassNotFoundException | LinkageError error) {
            send("class", name, "error", String.valueOf(error));
        }
    }

    @Override
    public void testStarted(Description test) {
        status = "passed";
        message = "";
    }

    @Override
    public void testFailure(Failure failure) {
        if (failure.getDescription().getMethodName() == null) {
            send("class", failure.getDescription().getClassName(), "error", said(failure));
        } else {
            status = "failed";
            message = said(failure);
        }
    }

    @Override
    public void testAssumptionFailure(Failure failure) {
        status = "skipped";
        message = said(failure);
    }

    @Override
    public void testIgnored(Description test) {
        send("test", name(test), "skipped", "");
    }

    @Override
    public void testFinished(Description test) {
        send("test", name(test), status, message);
    }

    private static String name(Description test) {
        return test.getClassName() + "::" + test.getMethodName();
    }

    private static String said(Failure failure) {
        return String.valueOf(failure.getException());
    }

    private synchronized void send(String kind, String name, String how, String message) {
        String line =
                "\n" + secret + " [" + quoted(kind) + ", " + quoted(name) + ", " + quoted(how) + ", "
                        + quoted(message) + "]\n";
        try {
            output.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException error) {
            Runtime.getRuntime().halt(1); // nobody listens
        }
    }

    private static String quoted(String text) {
        StringBuilder result = new StringBuilder("\"");
        for (char one : text.substring(0, Math.min(text.length(), MAX_MESSAGE_CHARS)).toCharArray()) {
            if (one < ' ' || one == '"' || one == '\\' || one > '~') {
                result.append(String.format("\\u%04x", (int) one));
            } else {
                result.append(one);
            }
        }
        return result.append('"').toString();
    }
}
