// Package simulate runs the whole agent, as internal/agent connects it, in a simulated world: runtime
// (fakecri), API server (fakeapi), cgroups, mounts and inotify are in memory, the disk is a directory, and
// time is that of synctest. A seed determines the pods and what is done with them, and the faults: failed,
// slow, hanging and lost calls, lost and repeated events, outages, and kill -9 of the agent at any call.
//
//	make simulate SEEDS=5000      # many seeds; prints the seeds that failed
//	make simulate SEED=17         # one seed, with a trace of every call
//
// During a run, no two containers of one name run in a pod, and no container starts again without a cause.
// Then the faults end, and within settleTime everything must be as the sources want it: containers,
// statuses, files, the Node. Last, all pods are deleted, and nothing may be left.
//
// Not simulated: rotation of logs (the fake runtime writes none), the kernel's cgroup files, inotify (the
// agent polls, as it does where inotify is unavailable), CSI, device and DRA plugins, requests to the agent's
// own servers, and what agent.Run does before RunIn: the lock file, preflight and kernel settings.
//
// The order of goroutines that are ready at the same time is Go's. Calls take random times, which orders
// almost everything; a seed that fails rarely may need several runs to fail again.
package simulate
