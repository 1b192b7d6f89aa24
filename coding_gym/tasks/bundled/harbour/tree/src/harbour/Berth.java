package harbour;

import java.util.LinkedHashMap;
import java.util.Map;

/** A place at the quay, and who lies there when. */
public final class Berth {
    private final String name;
    private final int length;
    private final Map<String, Stay> stays = new LinkedHashMap<>();

    public Berth(String name, int length) {
        this.name = name;
        this.length = length;
    }

    public String name() {
        return name;
    }

    public int length() {
        return length;
    }

    /** Whether a ship of this length could lie here, whatever it has booked so far. */
    boolean takes(String ship, int shipLength, Stay stay) {
        return shipLength <= length && stays.entrySet().stream()
                .noneMatch(one -> !one.getKey().equals(ship) && one.getValue().overlaps(stay));
    }

    void put(String ship, Stay stay) {
        stays.put(ship, stay);
    }

    void remove(String ship) {
        stays.remove(ship);
    }

    Stay stayOf(String ship) {
        return stays.get(ship);
    }
}
