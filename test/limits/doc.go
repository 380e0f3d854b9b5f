// Package limits tests the cgroup settings of pods, and that the kernel enforces them: on cgroup v1
// in a box on the host, and on cgroup v2 in a user-mode Linux. The same tests run on both, except
// those that need an API server: on cgroup v1 these are in test/e2e. The expected tables in testdata
// were recorded from the reference kubelet, except reserved.v2 and tiered.v2, which were computed
// from its formulas:
//
//	go test ./test/limits                                            Swiftlet, on both
//	SWIFTLET_BED_KUBELET=reference go test ./test/limits             the reference kubelet; must pass where recorded
//	SWIFTLET_BED_KUBELET=reference go test ./test/limits -args -record
package limits
