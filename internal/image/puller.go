package image

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"

	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
	"swiftlet/internal/require"
	"swiftlet/internal/why"
)

// Service is the runtime's image service; cri.Client is one.
type Service interface {
	// ImageStatus is nil without an error for an image that is not on the node.
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.Image, error)
	PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error)
}

// Config limits pulling.
type Config struct {
	// Serialize allows one pull at a time (serializeImagePulls).
	Serialize bool
	// MaxParallel is the most pulls at a time without Serialize; zero is no limit.
	MaxParallel int
	// QPS and Burst limit the rate of pulls; a QPS of zero is no limit.
	QPS   float32
	Burst int
	// Verify configures the verification of pull credentials for images on the node.
	Verify Verification
}

// Deps are what the puller works with. Images, Events, Clock and Log are required.
type Deps struct {
	Images Service
	// Credentials finds the pod's credentials for the image's repository
	// ("docker.io/library/busybox"). The puller calls it only before a pull or a
	// verification. Nil finds none.
	Credentials func(ctx context.Context, p *v1.Pod, repository string) ([]Credential, error)
	// OnUse is called with each image that Ensure returns, OnPulled after each pull; both may
	// be nil.
	OnUse    func(ref string)
	OnPulled func()
	Events   pod.Events
	Meters   Meters
	// Why records which pods wait for the pulls of others; may be nil.
	Why   *why.Tracker
	Clock clock.WithDelayedExecution
	Log   *slog.Logger
}

// Meters measure the puller's work; each may be nil.
type Meters struct {
	// Ensured counts requests by whether the image was present and whether it had to be
	// pulled; nil is unknown.
	Ensured func(policy v1.PullPolicy, present, pulled *bool)
	// Checked counts the verdicts on whether a pod may use a present image.
	Checked meter.CountOf
	// PullStarted is called when a pod begins to wait for a pull; the puller calls done when the
	// wait is over.
	PullStarted func(pod types.UID) (done func())
	// ImagePulled is called after each pull.
	Pulled func(size uint64, took time.Duration)
}

// Puller brings images onto the node. It may be used from any goroutine.
type Puller struct {
	images      Service
	credentials func(context.Context, *v1.Pod, string) ([]Credential, error)
	onUse       func(ref string)
	onPulled    func()
	events      pod.Events
	meters      Meters
	why         *why.Tracker
	clock       clock.WithDelayedExecution
	log         *slog.Logger

	backoff   pullBackoff
	requested *inFlightPulls // by namespace and image: they may wait for a slot
	inFlight  *inFlightPulls // by image
	slots     pullSlots
	rate      flowcontrol.PassiveRateLimiter

	verify  Verification
	records *records // nil where verification is off
	// presentText is the event message for an image that is present.
	presentText string
}

// New returns a puller and creates the directories for its records. A puller has no Run.
func New(cfg Config, deps Deps) (*Puller, error) {
	if err := require.Set("new image puller", map[string]any{
		"Images": deps.Images, "Events": deps.Events, "Clock": deps.Clock, "Log": deps.Log,
	}); err != nil {
		return nil, err
	}
	switch {
	case cfg.MaxParallel < 0 || cfg.QPS < 0 || cfg.Burst < 0:
		return nil, errors.New("new image puller: negative limit")
	case cfg.Serialize && cfg.MaxParallel > 1:
		return nil, errors.New("new image puller: Serialize excludes MaxParallel over 1")
	}
	p := &Puller{
		images: deps.Images, credentials: deps.Credentials, onUse: deps.OnUse, onPulled: deps.OnPulled,
		events: deps.Events, meters: deps.Meters, why: deps.Why, clock: deps.Clock, log: deps.Log,
		backoff:   pullBackoff{clock: deps.Clock, failures: map[string]failure{}},
		requested: newInFlightPulls(),
		inFlight:  newInFlightPulls(),
		slots:     pullSlots{clock: deps.Clock},
		rate:      flowcontrol.NewFakeAlwaysRateLimiter(),
	}
	if err := p.openRecords(cfg.Verify); err != nil {
		return nil, fmt.Errorf("new image puller: %w", err)
	}
	if p.credentials == nil {
		p.credentials = func(context.Context, *v1.Pod, string) ([]Credential, error) { return nil, nil }
	}
	if cfg.Serialize {
		cfg.MaxParallel = 1
	}
	if cfg.MaxParallel > 0 {
		p.slots.free = make(chan struct{}, cfg.MaxParallel)
	}
	if cfg.QPS > 0 {
		p.rate = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(cfg.QPS, cfg.Burst, deps.Clock)
	}
	return p, nil
}

func (p *Puller) openRecords(v Verification) (err error) {
	if err := v.Check(); err != nil {
		return err
	}
	p.verify, p.presentText = v, "Container image %q already present on machine"
	if v.Dir == "" {
		return nil
	}
	p.presentText += " and can be accessed by the pod"
	p.records, err = openRecords(v.Dir, p.clock, p.log)
	return err
}

// result is the outcome of a successful pull.
type result struct {
	image Image
	size  uint64
	took  time.Duration
	// credential is the index of the credential that worked.
	credential int
}
