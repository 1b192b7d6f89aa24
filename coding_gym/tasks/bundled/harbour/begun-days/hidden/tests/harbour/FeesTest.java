package harbour;

import static org.junit.Assert.assertEquals;

import org.junit.Test;

public class FeesTest {
    private static int fee(int length, int hours) {
        Planner planner = new Planner();
        planner.add(new Berth("quay", 500));
        planner.book("Albatross", length, Stay.of(7, 7 + hours));
        return planner.fee("Albatross");
    }

    @Test
    public void anHourIsADay() {
        assertEquals(3500, fee(10, 1));
        assertEquals(3500, fee(10, 24));
    }

    @Test
    public void aBegunDayIsPaid() {
        assertEquals(7000, fee(10, 25));
        assertEquals(7000, fee(10, 48));
        assertEquals(10500, fee(10, 49));
    }

    @Test
    public void threeDaysAreFull() {
        assertEquals(10500, fee(10, 72));
    }

    @Test
    public void laterDaysAreHalf() {
        assertEquals(10500 + 1750, fee(10, 73));
        assertEquals(10500 + 2 * 1750, fee(10, 120));
    }

    @Test
    public void aLongStayCosts() {
        assertEquals(3 * 350 * 41 + 7 * 7175, fee(41, 230));
    }
}
