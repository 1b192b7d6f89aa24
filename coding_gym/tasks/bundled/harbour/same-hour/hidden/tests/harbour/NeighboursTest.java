package harbour;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;

import org.junit.Test;

public class NeighboursTest {
    private final Planner planner = new Planner();

    public NeighboursTest() {
        planner.add(new Berth("quay", 50));
        planner.book("Albatross", 30, Stay.of(10, 20));
    }

    @Test
    public void theNextShipComesAsOneLeaves() {
        assertEquals("quay", planner.book("Bittern", 30, Stay.of(20, 25)));
    }

    @Test
    public void theLastShipLeavesAsOneComes() {
        assertEquals("quay", planner.book("Bittern", 30, Stay.of(5, 10)));
    }

    @Test
    public void aGapIsFilledExactly() {
        planner.book("Bittern", 30, Stay.of(30, 40));
        assertEquals("quay", planner.book("Curlew", 30, Stay.of(20, 30)));
    }

    @Test
    public void oneSharedHourIsTooMuch() {
        assertNull(planner.book("Bittern", 30, Stay.of(19, 25)));
        assertNull(planner.book("Curlew", 30, Stay.of(5, 11)));
    }

    @Test
    public void aStayInsideAnotherIsTooMuch() {
        assertNull(planner.book("Bittern", 30, Stay.of(12, 13)));
        assertNull(planner.book("Curlew", 30, Stay.of(1, 99)));
    }
}
