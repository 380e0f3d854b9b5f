package scale

import (
	"fmt"
	"strconv"
	"strings"
)

// Sizes are the numbers of nodes of all runs, and of pods on each.
type Sizes struct {
	Together     []int // of ours in one process
	Compared     []int // of kubemark's and of ours in a process each
	Pods         int   // per node
	ComparedPods int   // per node where kubemark is compared
	Storms       bool
}

// Plan lists the runs. Storms are run on the last cluster in one process only: the API server is away for
// minutes.
func Plan(sizes Sizes) []Spec {
	var specs []Spec
	for _, n := range sizes.Compared {
		specs = append(specs, Spec{Kind: Kubemark, Nodes: n, PodsPerNode: sizes.ComparedPods}, Spec{Kind: Separate, Nodes: n, PodsPerNode: sizes.ComparedPods})
	}
	for i, n := range sizes.Together {
		specs = append(specs, Spec{Kind: Together, Nodes: n, PodsPerNode: sizes.Pods, Storms: sizes.Storms && i == len(sizes.Together)-1})
	}
	return specs
}

// ParseNumbers parses positive numbers that are separated by commas. An empty text has none.
func ParseNumbers(text string) ([]int, error) {
	var numbers []int
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil || n <= 0 {
			return nil, fmt.Errorf("parse %q: not a positive number", word)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}
