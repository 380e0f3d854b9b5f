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
)

// Service is what is asked of the runtime's image service; cri.Client is one.
type Service interface {
	// ImageStatus is nil without an error for an image that is not on the node.
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.Image, error)
	PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error)
}

// Config limits pulling.
type Config struct {
	// Serialize allows one pull at a time (serializeImagePulls).
	Serialize bool
	// MaxParallel limits the pulls at a time otherwise; zero does not.
	MaxParallel int
	// QPS and Burst limit how often pulls may start; a QPS of zero does not.
	QPS   float32
	Burst int
	// Verify says when a pod must show that it could have pulled an image that is there.
	Verify Verification
}

// Deps are the puller's surroundings. Images, Events, Clock and Log are needed.
type Deps struct {
	Images Service
	// Credentials finds what may open the image's repository ("docker.io/library/busybox")
	// for the pod; it is asked only when a pull is due. Nil finds none.
	Credentials func(ctx context.Context, p *v1.Pod, repository string) ([]Credential, error)
	// Handed is told of each image that a container was given, Fetched that one came onto
	// the node; both may be nil.
	Handed  func(ref string)
	Fetched func()
	Events  pod.Events
	Meters  Meters
	Clock   clock.PassiveClock
	Log     *slog.Logger
}

// Meters measure the puller's work; each may be nil.
type Meters struct {
	// Ensured is told of each need of an image: whether it was there, and whether it had to
	// be pulled. Nil is not known.
	Ensured func(policy v1.PullPolicy, present, pulled *bool)
	// Checked counts the decisions on whether a pod may use an image that is there.
	Checked meter.CountOf
	// Waits is told that a pod begins to wait for a pull; what it returns is called when
	// that is over.
	Waits func(pod types.UID) (done func())
	// Pulled is told of each image that was fetched.
	Pulled func(size uint64, took time.Duration)
}

// Puller brings images onto the node. It may be used from any goroutine.
type Puller struct {
	images      Service
	credentials func(context.Context, *v1.Pod, string) ([]Credential, error)
	handed      func(ref string)
	fetched     func()
	events      pod.Events
	meters      Meters
	clock       clock.PassiveClock
	log         *slog.Logger

	backoff pullBackoff
	flights flights
	// slots holds a token per pull underway; nil is without a limit.
	slots chan struct{}
	rate  flowcontrol.PassiveRateLimiter

	verify  Verification
	records *records // nil where nothing is verified
	// presentText is what is told of an image that is there.
	presentText string
}

// New makes a puller, and the directories for its records; it needs no running.
func New(cfg Config, deps Deps) (*Puller, error) {
	switch {
	case deps.Images == nil || deps.Events == nil || deps.Clock == nil || deps.Log == nil:
		return nil, errors.New("new image puller: images, events, clock and log are needed")
	case cfg.MaxParallel < 0 || cfg.QPS < 0 || cfg.Burst < 0:
		return nil, errors.New("new image puller: a limit is negative")
	case cfg.Serialize && cfg.MaxParallel > 1:
		return nil, errors.New("new image puller: parallel pulls cannot be serialized")
	}
	p := &Puller{
		images: deps.Images, credentials: deps.Credentials, handed: deps.Handed, fetched: deps.Fetched,
		events: deps.Events, meters: deps.Meters, clock: deps.Clock, log: deps.Log,
		backoff: pullBackoff{clock: deps.Clock, failures: map[string]failure{}},
		flights: flights{current: map[string]*flight{}},
		rate:    flowcontrol.NewFakeAlwaysRateLimiter(),
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
		p.slots = make(chan struct{}, cfg.MaxParallel)
	}
	if cfg.QPS > 0 {
		p.rate = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(cfg.QPS, cfg.Burst, deps.Clock)
	}
	return p, nil
}

func (p *Puller) openRecords(v Verification) (err error) {
	if err := v.validate(); err != nil {
		return err
	}
	p.verify, p.presentText = v, "Container image %q already present on machine"
	if v.Dir == "" {
		return nil
	}
	p.presentText += " and can be accessed by the pod"
	p.records, err = openRecords(v.Dir, p.clock)
	return err
}

// result is a pull that went well.
type result struct {
	image Image
	size  uint64
	took  time.Duration
	// opened is which of the credentials was the right one.
	opened int
}
