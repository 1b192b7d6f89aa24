package harbour;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNull;

import org.junit.Test;

public class ChoiceTest {
    private static Planner planner(Berth... berths) {
        Planner planner = new Planner();
        for (Berth berth : berths) {
            planner.add(berth);
        }
        return planner;
    }

    @Test
    public void theShortestThatFitsIsTaken() {
        Planner planner = planner(new Berth("a", 120), new Berth("b", 30), new Berth("c", 60));
        assertEquals("b", planner.book("Albatross", 30, Stay.of(0, 9)));
        assertEquals("c", planner.book("Bittern", 20, Stay.of(0, 9)));
        assertEquals("a", planner.book("Curlew", 20, Stay.of(0, 9)));
        assertNull(planner.book("Dunlin", 20, Stay.of(0, 9)));
    }

    @Test
    public void longShipsFindTheirPlace() {
        Planner planner = planner(new Berth("long", 120), new Berth("short", 30));
        planner.book("Albatross", 12, Stay.of(0, 50));
        assertEquals("long", planner.book("Bittern", 110, Stay.of(3, 40)));
    }

    @Test
    public void namesDecideBetweenEquals() {
        Planner planner = planner(new Berth("west", 40), new Berth("east", 40));
        assertEquals("east", planner.book("Albatross", 40, Stay.of(0, 9)));
        assertEquals("west", planner.book("Bittern", 40, Stay.of(0, 9)));
    }

    @Test
    public void aLaterBerthMayBeShorter() {
        Planner planner = planner(new Berth("old", 80));
        planner.book("Albatross", 10, Stay.of(0, 9));
        planner.add(new Berth("fresh", 15));
        assertEquals("fresh", planner.book("Bittern", 10, Stay.of(20, 30)));
        assertEquals("old", planner.berthOf("Albatross"));
    }

    @Test
    public void aTakenBerthIsPassedOver() {
        Planner planner = planner(new Berth("b", 30), new Berth("c", 60));
        planner.book("Albatross", 30, Stay.of(0, 9));
        assertEquals("c", planner.book("Bittern", 30, Stay.of(8, 12)));
        assertEquals("b", planner.book("Curlew", 30, Stay.of(9, 12)));
    }
}
