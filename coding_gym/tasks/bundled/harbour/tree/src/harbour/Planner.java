package harbour;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Gives ships their berths. */
public final class Planner {
    private final List<Berth> berths = new ArrayList<>();
    private final Map<String, Integer> lengths = new LinkedHashMap<>();

    public void add(Berth berth) {
        if (berths.stream().anyMatch(one -> one.name().equals(berth.name()))) {
            throw new IllegalArgumentException("there is a berth " + berth.name() + " already");
        }
        berths.add(berth);
        berths.sort(Comparator.comparingInt(Berth::length).thenComparing(Berth::name));
    }

    /** Returns the name of the berth that a new ship gets, or null where there is none. */
    public String book(String ship, int length, Stay stay) {
        if (lengths.containsKey(ship)) {
            throw new IllegalArgumentException(ship + " has a berth already");
        }
        Berth berth = free(ship, length, stay);
        if (berth == null) {
            return null;
        }
        berth.put(ship, stay);
        lengths.put(ship, length);
        return berth.name();
    }

    /** Returns the name of the berth for another stay, or null where everything stays as it was. */
    public String move(String ship, Stay stay) {
        Berth before = berth(ship);
        Berth after = free(ship, lengths.get(ship), stay);
        if (after == null) {
            return null;
        }
        before.remove(ship);
        after.put(ship, stay);
        return after.name();
    }

    public void cancel(String ship) {
        berth(ship).remove(ship);
        lengths.remove(ship);
    }

    public Stay stay(String ship) {
        return berth(ship).stayOf(ship);
    }

    public String berthOf(String ship) {
        return berth(ship).name();
    }

    /** What the ship's stay costs, in cents. */
    public int fee(String ship) {
        return Tariff.fee(lengths.get(ship), stay(ship));
    }

    private Berth free(String ship, int length, Stay stay) {
        return berths.stream()
                .filter(one -> one.takes(ship, length, stay))
                .findFirst()
                .orElse(null);
    }

    private Berth berth(String ship) {
        return berths.stream()
                .filter(one -> one.stayOf(ship) != null)
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException("no berth for " + ship));
    }
}
