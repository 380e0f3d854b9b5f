package plan

import (
	"slices"

	"swiftlet/internal/pod"
)

// reset lists all instances of the pod's containers but the ephemeral ones, main containers
// before init containers. Those whose exit asked for it come last: as long as they are
// there, a reset that was broken off is taken up again.
func reset(in Input) []pod.Container {
	turn := func(c pod.Container) int {
		kind, known := pod.KindOf(in.Pod, c.Name)
		if !known || kind == pod.Ephemeral {
			return -1
		}
		turn := 0
		if kind == pod.Init {
			turn = 1
		}
		if c.State == pod.Exited && pod.RestartsAll(pod.FindContainer(in.Pod, c.Name), c.ExitCode) {
			turn += 2
		}
		return turn
	}
	all := slices.DeleteFunc(slices.Clone(in.Observed.Containers), func(c pod.Container) bool { return turn(c) < 0 })
	slices.SortStableFunc(all, func(a, b pod.Container) int { return turn(a) - turn(b) })
	return all
}
