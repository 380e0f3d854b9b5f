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
	// checkTimeout limits one check: the runtime may hang instead of failing.
	checkTimeout = 5 * time.Second
	// downAfter is how long checks may fail before the node becomes not ready. A restart of
	// the runtime within this time does not change the node's condition.
	downAfter = time.Second
	// unhealthyPeriod is the time between checks while the runtime is unhealthy.
	unhealthyPeriod = 500 * time.Millisecond
	// imagesPeriod is the time between two lists of images.
	imagesPeriod = 30 * time.Second
)

// runtimeState is the result of the last checks of the container runtime. Only the status
// loop uses it.
type runtimeState struct {
	status *runtimeapi.StatusResponse // of the last successful check
	// failingSince is when checks began to fail; zero while they succeed.
	failingSince time.Time
	version      string // "containerd://2.4.2"
	images       []*runtimeapi.Image
	imagesAt     time.Time
}

// check reads the runtime's status, its version if that may have changed, and from time to
// time its images.
func (s *runtimeState) check(ctx context.Context, runtime Runtime, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	status, err := runtime.Status(ctx, false)
	if err != nil {
		if s.failingSince.IsZero() {
			s.failingSince = now
		}
		return fmt.Errorf("check container runtime status: %w", err)
	}
	recovered := s.status == nil || !s.failingSince.IsZero()
	s.status, s.failingSince = status, time.Time{}
	if recovered || s.version == "" {
		// The runtime may have been upgraded.
		if v, err := runtime.Version(ctx); err == nil {
			// Official builds of containerd say "v2.4.2"; nodes show "2.4.2".
			s.version = v.RuntimeName + "://" + strings.TrimPrefix(v.RuntimeVersion, "v")
		}
	}
	if s.images == nil || now.Sub(s.imagesAt) >= imagesPeriod {
		images, err := runtime.ListImages(ctx)
		if err != nil {
			return fmt.Errorf("list images: %w", err)
		}
		s.images, s.imagesAt = sortImages(images), now
	}
	return nil
}

// sortImages sorts by size, largest first, so that a truncated list keeps the images that are
// most expensive to pull. It sorts by ID within a size, so that the order is stable.
func sortImages(images []*runtimeapi.Image) []*runtimeapi.Image {
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

// unhealthy reports whether to check the runtime again soon.
func (s *runtimeState) unhealthy() bool {
	return !s.failingSince.IsZero() || s.notReady() != nil || s.networkNotReady() != nil
}

// down returns an error if checks have failed for downAfter, or never succeeded.
func (s *runtimeState) down(now time.Time) error {
	if s.status == nil {
		return errors.New("container runtime status check may not have completed yet")
	}
	if !s.failingSince.IsZero() && now.Sub(s.failingSince) >= downAfter {
		return errors.New("container runtime is down")
	}
	return nil
}

// notReady returns an error if the runtime reports that it is not ready.
func (s *runtimeState) notReady() error {
	if s.status == nil {
		return nil // down reports it
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

// describe formats a condition as the reference kubelet does.
func describe(c *runtimeapi.RuntimeCondition) string {
	if c == nil {
		return "<nil>"
	}
	return fmt.Sprintf("%s=%t reason:%s message:%s", c.Type, c.Status, c.Reason, c.Message)
}
