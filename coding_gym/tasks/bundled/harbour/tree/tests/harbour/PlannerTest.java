package harbour;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;

import org.junit.Before;
import org.junit.Test;

public class PlannerTest {
    private final Planner planner = new Planner();

    @Before
    public void openTwoBerths() {
        planner.add(new Berth("north", 40));
        planner.add(new Berth("south", 90));
    }

    @Test
    public void aShipGetsABerth() {
        assertEquals("north", planner.book("Albatross", 35, Stay.of(8, 20)));
        assertEquals(Stay.of(8, 20), planner.stay("Albatross"));
    }

    @Test
    public void aBerthHoldsOneShip() {
        planner.book("Albatross", 35, Stay.of(8, 20));
        assertEquals("south", planner.book("Bittern", 35, Stay.of(10, 12)));
        assertNull(planner.book("Curlew", 35, Stay.of(11, 13)));
    }

    @Test
    public void aLongShipNeedsALongBerth() {
        assertEquals("south", planner.book("Albatross", 60, Stay.of(1, 2)));
        assertNull(planner.book("Bittern", 91, Stay.of(5, 6)));
    }

    @Test
    public void aCancelledStayIsFree() {
        planner.book("Albatross", 60, Stay.of(1, 9));
        planner.cancel("Albatross");
        assertEquals("south", planner.book("Bittern", 60, Stay.of(1, 9)));
    }

    @Test
    public void aDayIsPaidByTheMetre() {
        planner.book("Albatross", 10, Stay.of(0, 24));
        assertEquals(3500, planner.fee("Albatross"));
    }

    @Test
    public void aStayCanBeMoved() {
        planner.book("Albatross", 35, Stay.of(8, 20));
        assertEquals("north", planner.move("Albatross", Stay.of(40, 50)));
        assertEquals(Stay.of(40, 50), planner.stay("Albatross"));
    }

    @Test(expected = IllegalArgumentException.class)
    public void aShipIsBookedOnce() {
        planner.book("Albatross", 35, Stay.of(8, 20));
        planner.book("Albatross", 35, Stay.of(30, 40));
    }

    @Test(expected = IllegalArgumentException.class)
    public void aStayHasAnHour() {
        Stay.of(4, 4);
    }
}
