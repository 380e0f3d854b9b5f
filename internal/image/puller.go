package image

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/flowcontrol"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/utils/clock"
)

// Service is what is asked of the runtime's image service; cri.Client is one.
type Service interface {
	// ImageStatus is nil without an error for an image that is not on the node.
	ImageStatus(ctx context.Context, image *runtimeapi.ImageSpec, verbose bool) (*runtimeapi.Image, error)
	PullImage(ctx context.Context, image *runtimeapi.ImageSpec, auth *runtimeapi.AuthConfig, sandbox *runtimeapi.PodSandboxConfig) (string, error)
}

// Events records what the user should see.
type Events interface {
	Eventf(object runtime.Object, eventtype, reason, messageFmt string, args ...any)
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
}

// Deps are the puller's surroundings. All are needed but Credentials.
type Deps struct {
	Images Service
	// Credentials finds what may open the image's repository ("docker.io/library/busybox")
	// for the pod; it is asked only when a pull is due. Nil finds none.
	Credentials func(ctx context.Context, p *v1.Pod, repository string) ([]*runtimeapi.AuthConfig, error)
	Events      Events
	Clock       clock.PassiveClock
	Log         *slog.Logger
}

// Puller brings images onto the node. It may be used from any goroutine.
type Puller struct {
	images      Service
	credentials func(context.Context, *v1.Pod, string) ([]*runtimeapi.AuthConfig, error)
	events      Events
	clock       clock.PassiveClock
	log         *slog.Logger

	backoff backoff
	flights flights
	// slots holds a token per pull underway; nil is without a limit.
	slots chan struct{}
	rate  flowcontrol.PassiveRateLimiter
}

// New makes a puller; it needs no running.
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
		images: deps.Images, credentials: deps.Credentials, events: deps.Events, clock: deps.Clock, log: deps.Log,
		backoff: backoff{clock: deps.Clock, failures: map[string]failure{}},
		flights: flights{current: map[string]*flight{}},
		rate:    flowcontrol.NewFakeAlwaysRateLimiter(),
	}
	if p.credentials == nil {
		p.credentials = func(context.Context, *v1.Pod, string) ([]*runtimeapi.AuthConfig, error) { return nil, nil }
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

// result is a pull that went well.
type result struct {
	image Image
	size  uint64
	took  time.Duration
}
