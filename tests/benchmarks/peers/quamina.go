// Measures quamina: quamina RULES EVENTS, both files with one JSON document in a line. It prints the
// least time for an event in microseconds of processor time, and for each event the numbers of the
// rules that it matches.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"syscall"

	"quamina.net/go/quamina/v2"
)

const repetitions = 5

func lines(name string) [][]byte {
	file, err := os.Open(name)
	must(err)
	defer file.Close()
	var found [][]byte
	scanner := bufio.NewScanner(file)
	scanner.Buffer(nil, 1<<24)
	for scanner.Scan() {
		found = append(found, append([]byte(nil), scanner.Bytes()...))
	}
	must(scanner.Err())
	return found
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cpu returns the processor time of this process in microseconds.
func cpu() float64 {
	var used syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Utime.Nano()+used.Stime.Nano()) / 1e3
}

func main() {
	matcher, err := quamina.New()
	must(err)
	for number, rule := range lines(os.Args[1]) {
		must(matcher.AddPattern(number, string(rule)))
	}
	events := lines(os.Args[2])
	pass := func() [][]int {
		found := make([][]int, len(events))
		for at, event := range events {
			names, err := matcher.MatchesForEvent(event)
			must(err)
			numbers := make([]int, len(names))
			for each, name := range names {
				numbers[each] = name.(int)
			}
			found[at] = numbers
		}
		return found
	}
	found := pass()
	for _, numbers := range found {
		sort.Ints(numbers)
	}
	began := cpu()
	pass()
	rounds := int(max(1, 1e5/max(1, cpu()-began)))
	best := 1e300
	for at := 0; at < repetitions; at++ {
		before := cpu()
		for round := 0; round < rounds; round++ {
			pass()
		}
		best = min(best, (cpu()-before)/float64(rounds*len(events)))
	}
	must(json.NewEncoder(os.Stdout).Encode([]any{best, found}))
}
