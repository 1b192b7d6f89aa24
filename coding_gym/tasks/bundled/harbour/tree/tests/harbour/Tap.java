package harbour;

import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs test classes with JUnit and prints their results as TAP. */
public final class Tap extends RunListener {
    private int number;
    private boolean failed;

    @Override
    public void testStarted(Description test) {
        failed = false;
    }

    @Override
    public void testFailure(Failure failure) {
        failed = true;
        System.out.println("# " + failure);
    }

    @Override
    public void testFinished(Description test) {
        number++;
        System.out.println((failed ? "not ok " : "ok ") + number + " - " + test.getClassName()
                + "::" + test.getMethodName());
    }

    public static void main(String[] names) throws ClassNotFoundException {
        Class<?>[] classes = new Class<?>[names.length];
        for (int i = 0; i < names.length; i++) {
            classes[i] = Class.forName(names[i]);
        }
        Tap tap = new Tap();
        JUnitCore core = new JUnitCore();
        core.addListener(tap);
        boolean passed = core.run(classes).wasSuccessful();
        System.out.println("1.." + tap.number);
        System.exit(passed ? 0 : 1);
    }
}
