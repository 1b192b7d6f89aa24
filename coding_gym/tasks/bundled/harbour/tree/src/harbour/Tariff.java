package harbour;

/** What a stay costs, in cents. */
final class Tariff {
    private static final int CENTS_PER_METRE = 350;
    private static final int FULL_DAYS = 3;

    private Tariff() {}

    static int fee(int shipLength, Stay stay) {
        int day = CENTS_PER_METRE * shipLength;
        int full = Math.min(stay.days(), FULL_DAYS);
        int half = stay.days() - full;
        return full * day + half * (day / 2);
    }
}
