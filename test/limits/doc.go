// Package limits tests what the kernel is told of pods, and that it holds them to it: in a
// box on this machine, which has cgroup v1, and on cgroup v2 in a user-mode Linux. The same
// tests run on both, but for those of pods of an API server: on cgroup v1 these are test/e2e's.
// What they expect is in testdata, recorded from the reference kubelet, but for reserved.v2 and
// tiered.v2, which are worked out from its formulas:
//
//	go test ./test/limits                                            our kubelet on both
//	SWIFTLET_BED_KUBELET=reference go test ./test/limits             must pass too, where recorded
//	SWIFTLET_BED_KUBELET=reference go test ./test/limits -args -record
package limits
