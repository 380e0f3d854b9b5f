package podsync

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"swiftlet/internal/pod"
	"swiftlet/internal/runtime"
	"swiftlet/internal/why"
)

// Remove deletes what is left of a pod that is in no source: exited containers and sandboxes,
// logs, its directory, its mirror, and the state that other packages have of it.
func (s *PodSteps) Remove(ctx context.Context, w pod.Work) error {
	s.track(w, why.Removing)
	if err := s.timed(w.Pod, why.Remove, func() error { return s.remove(ctx, w) }); err != nil {
		return err
	}
	s.deps.Why.Forget(w.Pod.UID)
	return nil
}

func (s *PodSteps) remove(ctx context.Context, w pod.Work) error {
	ref := pod.RefOf(w.Pod)
	observed, err := s.deps.Observer.Refresh(ctx, ref.UID)
	if err != nil {
		return fmt.Errorf("read pod from runtime: %w", err)
	}
	logs := runtime.DeleteLogs
	if w.Returns { // the restart counts of its containers follow from the logs
		logs = runtime.KeepLogs
	}
	if err := s.deps.Runtime.Remove(ctx, ref, runtime.Targets{Containers: observed.Containers}, logs); err != nil {
		return err
	}
	if err := errors.Join(s.removeLogs(ref, logs), s.removeDir(ref)); err != nil {
		return err
	}
	s.removeMirror(ctx, w)
	// Sandboxes are removed last: by them a restarted kubelet finds the pod again.
	if err := s.deps.Runtime.Remove(ctx, ref, runtime.Targets{Sandboxes: observed.Sandboxes}, logs); err != nil {
		return err
	}
	if err := s.confirmRemoved(ctx, ref.UID); err != nil {
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

// confirmRemoved returns an error if the runtime still has something of the pod. A request of a
// kubelet that has crashed may complete late and create a container.
func (s *Steps) confirmRemoved(ctx context.Context, uid types.UID) error {
	left, err := s.deps.Observer.Refresh(ctx, uid)
	switch {
	case err != nil:
		return fmt.Errorf("read pod from runtime after its removal: %w", err)
	case len(left.Containers) > 0:
		return fmt.Errorf("remove pod: runtime has a new container %s", left.Containers[0].ID)
	case len(left.Sandboxes) > 0:
		return fmt.Errorf("remove pod: runtime has a new sandbox %s", left.Sandboxes[0].ID)
	}
	return nil
}

func (s *Steps) removeLogs(ref pod.Ref, logs runtime.Logs) error {
	if logs == runtime.KeepLogs {
		return nil
	}
	return s.deps.Logs.RemoveLogs(ref)
}

// removeDir deletes the pod's directory. Its volumes are unmounted; it fails if anything is still
// mounted below the directory.
func (s *Steps) removeDir(ref pod.Ref) error {
	if err := s.deps.Volumes.RemovePodDir(ref.UID); err != nil {
		return fmt.Errorf("remove pod directory: %w", err)
	}
	return nil
}

// mirrorTimeout limits a change of a mirror. A static pod runs without the API server, and may be the API
// server itself: its worker must not wait for long.
const mirrorTimeout = 5 * time.Second

// removeMirror leaves a mirror that cannot be deleted now to the housekeeper, or to the next pod
// of that name: a static pod that has changed must not wait for the API server.
func (s *Steps) removeMirror(ctx context.Context, w pod.Work) {
	if s.deps.Mirrors == nil || w.Mirror == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
	defer cancel()
	if _, err := s.deps.Mirrors.Delete(ctx, pod.RefOf(w.Mirror), w.Mirror.UID); err != nil {
		s.deps.Log.Warn("remove pod: failed to delete mirror, housekeeping retries", pod.RefOf(w.Pod).Attr(), "err", err)
	}
}
