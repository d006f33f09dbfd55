import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import software.amazon.event.ruler.Machine;

/**
 * Measures event-ruler: java -cp JARS Ruler.java RULES EVENTS, both files with one JSON document in a
 * line. It prints the least time for an event in microseconds of processor time, and for each event
 * the numbers of the rules that it matches.
 */
public class Ruler {
    private static final double WARM_S = 3;
    private static final int REPETITIONS = 5;

    public static void main(String[] files) throws Exception {
        Machine machine = new Machine();
        int number = 0;
        for (String rule : Files.readAllLines(Path.of(files[0]))) {
            machine.addRule(Integer.toString(number++), rule);
        }
        List<String> events = Files.readAllLines(Path.of(files[1]));
        long began = System.nanoTime();
        while (System.nanoTime() - began < WARM_S * 1e9) pass(machine, events);
        int rounds = rounds(machine, events);
        double best = Double.MAX_VALUE;
        for (int at = 0; at < REPETITIONS; at++) {
            long before = cpu();
            for (int round = 0; round < rounds; round++) pass(machine, events);
            best = Math.min(best, (cpu() - before) / 1e3 / rounds / events.size());
        }
        List<List<Integer>> found = new ArrayList<>();
        for (String event : events) {
            found.add(machine.rulesForJSONEvent(event).stream().map(name -> Integer.valueOf(name.toString())).sorted().toList());
        }
        System.out.println(new ObjectMapper().writeValueAsString(List.of(best, found)));
    }

    private static void pass(Machine machine, List<String> events) throws Exception {
        for (String event : events) machine.rulesForJSONEvent(event);
    }

    /** Returns how many passes over the events take a tenth of a second. */
    private static int rounds(Machine machine, List<String> events) throws Exception {
        long before = cpu();
        pass(machine, events);
        return (int) Math.max(1, 1e8 / Math.max(1, cpu() - before));
    }

    private static long cpu() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
