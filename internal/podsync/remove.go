package podsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
)

// Remove deletes what is left of a pod that no source wants: dead containers and sandboxes,
// logs, its folder, its mirror, and what others remember of it.
func (s *PodSteps) Remove(ctx context.Context, w pod.Work) error {
	ref := pod.RefOf(w.Pod)
	observed, err := s.deps.Observer.Refresh(ctx, ref.UID)
	if err != nil {
		return fmt.Errorf("read what is left of the pod: %w", err)
	}
	logs := runtime.DeleteLogs
	if w.Returns { // its containers go on counting restarts by their logs
		logs = runtime.KeepLogs
	}
	if err := s.deps.Runtime.Remove(ctx, ref, runtime.Targets{Containers: observed.Containers}, logs); err != nil {
		return err
	}
	if err := errors.Join(s.removeLogs(ref, logs), s.removeFolder(ref)); err != nil {
		return err
	}
	s.removeMirror(ctx, w)
	// The sandboxes go last: they are what a new agent would know the pod by.
	if err := s.deps.Runtime.Remove(ctx, ref, runtime.Targets{Sandboxes: observed.Sandboxes}, logs); err != nil {
		return err
	}
	if err := s.allGone(ctx, ref.UID); err != nil {
		return err
	}
	if s.deps.Resizing.Actual != nil {
		s.deps.Resizing.Actual.Forget(ref.UID)
	}
	s.deps.Status.Forget(ref.UID)
	if s.deps.Removed != nil {
		s.deps.Removed(ref.UID)
	}
	return nil
}

// allGone makes sure that the runtime has nothing of the pod any more. An agent that died
// may have left a request behind that it answers late, with a container that is not known.
func (s *Steps) allGone(ctx context.Context, uid types.UID) error {
	left, err := s.deps.Observer.Refresh(ctx, uid)
	switch {
	case err != nil:
		return fmt.Errorf("read whether all of the pod is gone: %w", err)
	case len(left.Containers) > 0:
		return fmt.Errorf("container %s of the pod has appeared", left.Containers[0].ID)
	case len(left.Sandboxes) > 0:
		return fmt.Errorf("sandbox %s of the pod has appeared", left.Sandboxes[0].ID)
	}
	return nil
}

func (s *Steps) removeLogs(ref pod.Ref, logs runtime.Logs) error {
	if logs == runtime.KeepLogs {
		return nil
	}
	return s.deps.Logs.RemoveLogs(ref)
}

// removeFolder deletes the pod's own folder. Volumes were unmounted before; whatever is
// still mounted below makes this fail rather than be deleted through.
func (s *Steps) removeFolder(ref pod.Ref) error {
	if err := s.deps.Volumes.RemovePodDir(ref.UID); err != nil {
		return fmt.Errorf("remove the pod's folder: %w", err)
	}
	return nil
}

// mirrorPatience is how long the API server is given to drop a mirror.
const mirrorPatience = 5 * time.Second

// removeMirror leaves one that cannot be deleted now to the keeper, or to the next pod of that
// name: a static pod that has changed does not wait for the API server.
func (s *Steps) removeMirror(ctx context.Context, w pod.Work) {
	if s.deps.Mirrors == nil || w.Mirror == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorPatience)
	defer cancel()
	if _, err := s.deps.Mirrors.Delete(ctx, pod.RefOf(w.Mirror), w.Mirror.UID); err != nil {
		s.deps.Log.Warn("the mirror of a pod that is gone stays for now", "pod", pod.RefOf(w.Pod).String(), "err", err)
	}
}
