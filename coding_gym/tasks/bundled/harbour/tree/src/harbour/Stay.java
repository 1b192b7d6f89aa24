package harbour;

/** The hours from one up to another, which does not belong to them. */
public final class Stay {
    private static final int HOURS_PER_DAY = 24;

    private final int from;
    private final int until;

    private Stay(int from, int until) {
        this.from = from;
        this.until = until;
    }

    public static Stay of(int from, int until) {
        if (from < 0 || until <= from) {
            throw new IllegalArgumentException("no stay from " + from + " until " + until);
        }
        return new Stay(from, until);
    }

    public boolean overlaps(Stay other) {
        return from < other.until && other.from < until;
    }

    /** Days of 24 hours from the arrival on, a begun one counted as a whole one. */
    public int days() {
        return (until - from + HOURS_PER_DAY - 1) / HOURS_PER_DAY;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Stay
                && ((Stay) other).from == from
                && ((Stay) other).until == until;
    }

    @Override
    public int hashCode() {
        return 31 * from + until;
    }

    @Override
    public String toString() {
        return from + "-" + until;
    }
}
