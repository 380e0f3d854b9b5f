package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// checkTimeout bounds one look at the runtime, which may hang rather than fail.
	checkTimeout = 5 * time.Second
	// downAfter is how long the runtime may fail to answer before the node says so. A
	// restart of the runtime within it goes unseen by the cluster, as it should.
	downAfter = time.Second
	// troubledEvery is how often the runtime is looked at while it fails.
	troubledEvery = 500 * time.Millisecond
	// imagesEvery is how often the runtime is asked for its images.
	imagesEvery = 30 * time.Second
)

// runtimeState is what the last looks at the container runtime have shown. It belongs to
// the status loop.
type runtimeState struct {
	status *runtimeapi.StatusResponse // of the last look that was answered
	// failingSince is when the runtime stopped answering; zero while it answers.
	failingSince time.Time
	version      string // "containerd://2.4.2"
	images       []*runtimeapi.Image
	imagesAt     time.Time
}

// look asks the runtime how it is. The quick questions come first and always; images only
// now and then.
func (s *runtimeState) look(ctx context.Context, runtime Runtime, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	status, err := runtime.Status(ctx, false)
	if err != nil {
		if s.failingSince.IsZero() {
			s.failingSince = now
		}
		return fmt.Errorf("check the container runtime: %w", err)
	}
	returned := s.status == nil || !s.failingSince.IsZero()
	s.status, s.failingSince = status, time.Time{}
	if returned || s.version == "" {
		// It may have come back as another version.
		if v, err := runtime.Version(ctx); err == nil {
			// Official builds of containerd say "v2.4.2"; nodes show "2.4.2".
			s.version = v.RuntimeName + "://" + strings.TrimPrefix(v.RuntimeVersion, "v")
		}
	}
	if s.images == nil || now.Sub(s.imagesAt) >= imagesEvery {
		images, err := runtime.ListImages(ctx)
		if err != nil {
			return fmt.Errorf("check the container runtime: %w", err)
		}
		s.images, s.imagesAt = sorted(images), now
	}
	return nil
}

// sorted puts the largest first, so that a bounded list keeps what is dearest to pull,
// and ties in an order that does not change from look to look.
func sorted(images []*runtimeapi.Image) []*runtimeapi.Image {
	all := append([]*runtimeapi.Image{}, images...)
	slices.SortFunc(all, func(a, b *runtimeapi.Image) int {
		if a.Size != b.Size {
			if a.Size > b.Size {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Id, b.Id)
	})
	return all
}

// troubled reports whether the runtime should be looked at again soon.
func (s *runtimeState) troubled() bool {
	return !s.failingSince.IsZero() || s.notReady() != nil || s.networkNotReady() != nil
}

// down says that the runtime does not answer, or never did.
func (s *runtimeState) down(now time.Time) error {
	if s.status == nil {
		return errors.New("container runtime status check may not have completed yet")
	}
	if !s.failingSince.IsZero() && now.Sub(s.failingSince) >= downAfter {
		return errors.New("container runtime is down")
	}
	return nil
}

// notReady says that the runtime answers that it is not ready.
func (s *runtimeState) notReady() error {
	if s.status == nil {
		return nil // down says it
	}
	if c := s.condition(runtimeapi.RuntimeReady); c == nil || !c.Status {
		return fmt.Errorf("container runtime not ready: %s", describe(c))
	}
	return nil
}

func (s *runtimeState) networkNotReady() error {
	if s.status == nil {
		return errors.New("network state unknown")
	}
	if c := s.condition(runtimeapi.NetworkReady); c == nil || !c.Status {
		return fmt.Errorf("container runtime network not ready: %s", describe(c))
	}
	return nil
}

func (s *runtimeState) condition(kind string) *runtimeapi.RuntimeCondition {
	for _, c := range s.status.GetStatus().GetConditions() {
		if c.Type == kind {
			return c
		}
	}
	return nil
}

// describe spells a condition as users of the reference kubelet know it.
func describe(c *runtimeapi.RuntimeCondition) string {
	if c == nil {
		return "<nil>"
	}
	return fmt.Sprintf("%s=%t reason:%s message:%s", c.Type, c.Status, c.Reason, c.Message)
}
