package plan

import (
	"slices"

	"swiftlet/internal/pod"
)

// reset lists all instances of the pod's containers except ephemeral ones, main containers before
// init containers. The instances whose exit caused the reset are last: as long as they exist, an
// interrupted reset continues.
func reset(in Input) []pod.Container {
	order := func(c pod.Container) int {
		kind, known := pod.KindOf(in.Pod, c.Name)
		if !known || kind == pod.Ephemeral {
			return -1
		}
		n := 0
		if kind == pod.Init {
			n = 1
		}
		if c.State == pod.Exited && pod.RestartsAll(pod.FindContainer(in.Pod, c.Name), c.ExitCode) {
			n += 2
		}
		return n
	}
	all := slices.DeleteFunc(slices.Clone(in.Observed.Containers), func(c pod.Container) bool { return order(c) < 0 })
	slices.SortStableFunc(all, func(a, b pod.Container) int { return order(a) - order(b) })
	return all
}
