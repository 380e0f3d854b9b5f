package main

// breakage is one deliberate mistake: an edit of a file, and the test that must fail with it.
type breakage struct {
	name     string
	file     string // below internal/
	from, to string // from occurs once in the file
	test     string // arguments of go test
}

const (
	path   = "-short ./test/path"
	counts = "-run ^TestCounts$ ./test/path"
	crash  = "-short -run TestCrashMatrix/cases/^(start|start_of_a_job|deletion)$ ./test/simulate"
)

var breaks = []breakage{
	{"volumes of an ended pod are not unmounted", "podsync/finish.go",
		"return s.deps.Volumes.Unmount(ctx, uid)", "return nil", crash},
	{"mounts below a pod's directory stay", "volume/unmount.go",
		"if err := v.deps.Mounter.UnmountBeneath(dir); err != nil {", "if err := error(nil); err != nil {", crash},
	{"the cgroup of a pod is not removed", "podsync/finish.go",
		"return s.deps.Cgroups.RemovePod(ctx, uid)", "return nil", crash},
	{"a state file is not synced", "checkpoint/replace.go",
		"		err = do.sync(f)\n", "		err = nil\n", "./internal/checkpoint"},
	{"a directory is not synced", "checkpoint/replace.go",
		"	return syncDir(do, dir)\n", "	return nil\n", "./internal/checkpoint"},
	{"calls of the runtime have no deadline", "cri/errors.go",
		"return context.WithTimeout(ctx, c.timeout+extra)", "return context.WithCancel(ctx)", "./internal/cri"},
	{"a crashed container is restarted almost without back-off", "podsync/crash_backoff.go",
		"if due := exited.Add(e.delay); now.Before(due) {", "if due := exited.Add(time.Second); now.Before(due) {", path},
	{"a running container is replaced", "plan/main.go",
		"case latest.Hash != \"\" && latest.Hash != in.Hash(c):", "case latest.Hash != in.Hash(c)+\"x\":", path},
	{"a liveness failure is ignored", "plan/main.go",
		"case health.Liveness == pod.Failed:", "case false:", path},
	{"a failed write of a status is not repeated", "status/run.go",
		"		e.dirty, e.since = true, since\n", "		e.since = since\n", "./internal/status"},
	{"the pod is not deleted from the API server", "podsync/finish.go",
		"	s.deps.Status.Finish(w.Pod)\n", "", path},
	{"an error of StopPodSandbox is ignored", "runtime/stop_pod.go",
		"	err := r.stopSandboxes(ctx, sandboxes)\n", "	var err error\n	_ = r.stopSandboxes(ctx, sandboxes)\n", "./internal/runtime"},
	{"a stale event is taken", "observe/events.go",
		"		return stamp.Before(r.verified)\n", "		return r == nil\n", "./internal/observe"},
	{"an older observation replaces a newer one", "observe/record.go",
		"	newer := !s.at.Before(r.view.At)\n", "	newer := true\n", "./internal/observe"},
	{"containers get no grace period", "runtime/stop_container.go",
		"r.deps.CRI.StopContainer(ctx, c.ID, max(grace, pod.MinGracePeriod))", "r.deps.CRI.StopContainer(ctx, c.ID, 0)", "./internal/runtime"},
	{"the preStop hook is skipped", "runtime/stop_container.go",
		"if spec.Lifecycle != nil && spec.Lifecycle.PreStop != nil && grace > 0 {", "if false {", "./internal/runtime"},
	{"the termination message is read without a bound", "runtime/termination_message.go",
		"max(info.Size()-size, 0), size))", "0, info.Size()))", "./internal/runtime"},
	{"a manifest is read without a bound", "source/file_scan.go",
		"io.LimitReader(file, maxManifest+1)", "file", "./internal/source"},
	{"the failure threshold of probes is ignored", "probe/state.go",
		"		threshold = s.target.Probe.FailureThreshold\n", "		threshold = 1\n", "./internal/probe"},
	{"a deletion ignores the UID of the mirror pod", "desired/mirror.go",
		"		Preconditions:      metav1.NewUIDPreconditions(string(uid)),\n", "", "./internal/desired"},
	{"a late container of a removed pod stays", "podsync/remove.go",
		"	if err := s.confirmRemoved(ctx, ref.UID); err != nil {\n		return err\n	}\n", "", "./internal/podsync"},
	{"sandboxes are not removed", "podsync/remove.go",
		"runtime.Targets{Sandboxes: observed.Sandboxes}, logs); err != nil {", "runtime.Targets{}, logs); err != nil {", path},
	{"a changed ConfigMap does not reach its volume", "volume/refresh.go",
		"uses = uses || (k == kind && n == name)", "uses = false", "./internal/volume"},
	{"a failed pull is repeated without back-off", "image/backoff.go",
		"return max(0, f.delay-b.clock.Since(f.at)), f.message", "return 0, f.message", "./internal/image"},
	{"limits of local storage are not enforced", "eviction/enforce_limits.go",
		"	if violation == nil {\n", "	if violation != nil || true {\n", "./internal/eviction"},
	{"a link out of a volume is followed", "volume/safepath/open.go",
		"unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS", "0", "./internal/volume/safepath"},
	{"a removal crosses a mount point", "volume/safepath/remove.go",
		"openParent(path, filetree.OneMount)", "openParent(path, 0)", "./internal/volume/safepath"},
	{"logs are removed through a link", "runtime/remove_container.go",
		"unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS", "0", "./internal/runtime"},
	{"a pod has all slots of exec probes", "probe/exec_slots.go",
		"max(1, cap(e.slots)-1)", "1000", "./internal/probe"},
	{"ids of user namespaces wrap around", "resource/userns/userns.go",
		"cfg.Count = min(cfg.Count, endOfIDs-cfg.First)", "_ = endOfIDs", "./internal/resource/userns"},
	{"a handler sees the credential of its client", "server/auth.go",
		"r.Header.Del(\"Authorization\")", "", "./internal/server"},
	{"a terminal gets the control characters of pods", "why/words.go",
		"	return plain(text)\n", "	return text\n", "./internal/why"},
	{"a panic of a check for evictions ends the agent", "eviction/run.go",
		"e.contained(func() { wait = e.synchronize(ctx) })", "wait = e.synchronize(ctx)", "./internal/eviction"},
	{"a start reads the pod once more from the runtime", "podsync/refresh.go",
		"	observed, err := s.deps.Observer.Refresh(ctx, uid)\n", "	_, _ = s.deps.Observer.Refresh(ctx, uid)\n	observed, err := s.deps.Observer.Refresh(ctx, uid)\n", counts},
	{"a status is written twice", "status/run.go",
		"	e.resourceVersion = version\n", "	e.resourceVersion = version\n	_ = p.unlocked(ctx, func(ctx context.Context) error {\n		_, err := p.client.PatchStatus(ctx, object.Namespace, object.Name, patch)\n		return err\n	})\n", counts},
}
