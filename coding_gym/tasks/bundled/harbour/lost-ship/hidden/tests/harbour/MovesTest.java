package harbour;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;

import org.junit.Test;

public class MovesTest {
    private final Planner planner = new Planner();

    public MovesTest() {
        planner.add(new Berth("long", 90));
        planner.add(new Berth("short", 40));
        planner.book("Albatross", 35, Stay.of(10, 20));
    }

    @Test
    public void aStayGetsLonger() {
        assertEquals("short", planner.move("Albatross", Stay.of(10, 26)));
        assertEquals(Stay.of(10, 26), planner.stay("Albatross"));
    }

    @Test
    public void aStayGetsLongerInAFullHarbour() {
        planner.book("Bittern", 80, Stay.of(0, 90));
        assertEquals("short", planner.move("Albatross", Stay.of(8, 12)));
        assertEquals("short", planner.book("Curlew", 20, Stay.of(12, 20)));
    }

    @Test
    public void aRefusedShipStays() {
        planner.book("Bittern", 80, Stay.of(0, 90));
        planner.book("Curlew", 30, Stay.of(30, 40));
        assertNull(planner.move("Albatross", Stay.of(15, 31)));
        assertEquals("short", planner.berthOf("Albatross"));
        assertEquals(Stay.of(10, 20), planner.stay("Albatross"));
        assertEquals(350 * 35, planner.fee("Albatross"));
        assertNull(planner.book("Dunlin", 30, Stay.of(19, 21)));
    }

    @Test
    public void anotherBerthIsFound() {
        planner.book("Curlew", 30, Stay.of(20, 40));
        assertEquals("long", planner.move("Albatross", Stay.of(15, 31)));
        assertEquals("long", planner.berthOf("Albatross"));
        assertEquals("short", planner.book("Dunlin", 30, Stay.of(10, 20)));
    }

    @Test
    public void theShortBerthIsPreferredAgain() {
        planner.book("Bittern", 38, Stay.of(12, 14));
        assertEquals("long", planner.berthOf("Bittern"));
        planner.cancel("Albatross");
        assertEquals("short", planner.move("Bittern", Stay.of(13, 15)));
    }

    @Test
    public void theSameStayAgainChangesNothing() {
        assertEquals("short", planner.move("Albatross", Stay.of(10, 20)));
        assertEquals("long", planner.book("Bittern", 35, Stay.of(10, 20)));
    }

    @Test(expected = IllegalArgumentException.class)
    public void onlyBookedShipsMove() {
        planner.move("Nobody", Stay.of(1, 2));
    }
}
