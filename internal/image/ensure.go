package image

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/cri"
	"swiftlet/internal/meter"
	"swiftlet/internal/pod"
)

// request is one container's need of an image.
type request struct {
	p       *v1.Pod
	c       *v1.Container
	policy  v1.PullPolicy
	spec    *runtimeapi.ImageSpec
	sandbox *runtimeapi.PodSandboxConfig
	// credentials finds what may open it. Plugins may take long to answer, and may answer
	// differently each time: they are asked once.
	credentials func() ([]Credential, error)
}

// Sandbox is where an image is going to run.
type Sandbox interface {
	Config() *runtimeapi.PodSandboxConfig
}

// Image is an image that is there.
type Image struct {
	// Ref is the runtime's own reference to it.
	Ref string
	// UID or User is whom it wants to run as, where it says.
	UID  *int64
	User string
}

func imageOf(ref string, i *runtimeapi.Image) Image {
	found := Image{Ref: ref, User: i.GetUsername()}
	if i.GetUid() != nil {
		found.UID = &i.Uid.Value
	}
	return found
}

// Ensure returns the container's image as the runtime has it, which is pulled first if
// need be. It blocks for as long as that takes. Every error but that of ctx is an
// *Error, and the user has been told of it. sandbox may be nil.
func (p *Puller) Ensure(ctx context.Context, of *v1.Pod, c *v1.Container, sandbox Sandbox) (Image, error) {
	var config *runtimeapi.PodSandboxConfig
	if sandbox != nil {
		config = sandbox.Config()
	}
	found, err := p.ensure(ctx, of, c, config)
	if err == nil {
		meter.With(p.handed, found.Ref)
		return found, nil
	}
	if ctx.Err() != nil {
		return Image{}, fmt.Errorf("ensure image %s: %w", c.Image, ctx.Err())
	}
	p.warn(of, c, "Failed", "Error: %s", err.Reason)
	return Image{}, err
}

func (p *Puller) ensure(ctx context.Context, of *v1.Pod, c *v1.Container, sandbox *runtimeapi.PodSandboxConfig) (Image, *Error) {
	repository, name, tag, err := parseName(c.Image)
	var present, pulled *bool
	if p.meters.Ensured != nil {
		defer func() { p.meters.Ensured(policyOf(c, tag), present, pulled) }()
	}
	if err != nil {
		message := fmt.Sprintf("Failed to apply default image tag %q: %v", c.Image, err)
		p.warn(of, c, "InspectFailed", "%s", message)
		return Image{}, &Error{Reason: ReasonInvalidName, Message: message, Err: err}
	}
	r := request{
		p: of, c: c, policy: policyOf(c, tag), sandbox: sandbox,
		spec:        &runtimeapi.ImageSpec{Image: name, Annotations: of.Annotations},
		credentials: sync.OnceValues(func() ([]Credential, error) { return p.credentials(ctx, of, repository) }),
	}
	if r.policy != v1.PullAlways {
		found, err := p.images.ImageStatus(ctx, r.spec, false)
		if err != nil {
			message := fmt.Sprintf("Failed to inspect image %q: %s", name, cri.Text(err))
			if ctx.Err() == nil { // otherwise the pod is to end, and nothing failed
				p.warn(of, c, "InspectFailed", "%s", message)
			}
			return Image{}, &Error{Reason: ReasonInspect, Message: message, Err: err}
		}
		present = new(found != nil)
		if found != nil {
			usable, err := p.mayUse(r, found)
			if err != nil {
				return Image{}, p.pullFailed(r, opener(nil), fmt.Errorf("find credentials: %w", err))
			}
			if usable {
				pulled = new(false)
				p.tell(of, c, "Pulled", p.presentText, c.Image)
				return imageOf(found.Id, found), nil
			}
		}
	}
	if r.policy == v1.PullNever { // nor is a pod told of an image that it may not use
		message := fmt.Sprintf("Container image %q is not present with pull policy of Never", c.Image)
		p.warn(of, c, "ErrImageNeverPull", "%s", message)
		return Image{}, &Error{Reason: ReasonNeverPull, Message: message}
	}
	pulled = new(true)
	return p.pull(ctx, r)
}

// key is what a failure to pull counts for.
func (r request) key() string { return string(r.p.UID) + "_" + r.c.Image }

// pull fetches the image unless it failed a short while ago.
func (p *Puller) pull(ctx context.Context, r request) (Image, *Error) {
	key := r.key()
	credentials, unknown := r.credentials()
	with := opener(credentials)
	if left, before := p.backoff.left(key, with); left > 0 {
		message := fmt.Sprintf("Back-off pulling image %q", r.c.Image)
		p.tell(r.p, r.c, "BackOff", "%s", message)
		return Image{}, &Error{Reason: ReasonBackOff, Message: message + ": " + before, RetryAfter: left}
	}
	if unknown != nil {
		return Image{}, p.pullFailed(r, with, fmt.Errorf("find credentials: %w", unknown))
	}
	asked := p.clock.Now()
	if p.meters.Waits != nil {
		defer p.meters.Waits(r.p.UID)()
	}
	got, err := p.recorded(r, credentials, func() (result, error) {
		p.tell(r.p, r.c, "Pulling", "Pulling image %q", r.c.Image)
		return p.share(ctx, r, credentials)
	})
	if err != nil {
		if ctx.Err() != nil { // nobody wants it any more: no failure of the image's
			return Image{}, &Error{Reason: ReasonPull, Message: ctx.Err().Error(), Err: ctx.Err()}
		}
		return Image{}, p.pullFailed(r, with, err)
	}
	p.backoff.succeed(key)
	p.tell(r.p, r.c, "Pulled", "Successfully pulled image %q in %v (%v including waiting). Image size: %v bytes.",
		r.c.Image, got.took.Truncate(time.Millisecond), p.clock.Since(asked).Truncate(time.Millisecond), got.size)
	return got.image, nil
}

// recorded pulls an image and notes with what, for those who ask for it later.
func (p *Puller) recorded(r request, credentials []Credential, pull func() (result, error)) (result, error) {
	if p.records == nil {
		return pull()
	}
	if err := p.records.begin(r.c.Image); err != nil {
		return result{}, err
	}
	got, err := pull()
	if err == nil {
		var with *Credential // none
		if got.opened < len(credentials) {
			with = &credentials[got.opened]
		}
		p.learn(r, got.image.Ref, with)
	}
	if err := p.records.end(r.c.Image); err != nil {
		p.log.Warn("the record of a pull underway stays", "image", r.c.Image, "err", err)
	}
	return got, err
}

// pullFailed classes a failed pull, tells the user, and holds the next one back.
func (p *Puller) pullFailed(r request, with string, cause error) *Error {
	text := cri.PullText(cause)
	p.warn(r.p, r.c, "Failed", "Failed to pull image %q: %s", r.c.Image, text)
	failed := &Error{Reason: ReasonPull, Message: text, Err: cause}
	// Runtimes have no other way to class an error than how its message begins.
	if rest, ok := strings.CutPrefix(text, ReasonRegistryUnavailable); ok {
		failed.Reason = ReasonRegistryUnavailable
		failed.Message = fmt.Sprintf("image pull failed for %s because the registry is unavailable%s", r.c.Image, rest)
	} else if rest, ok := strings.CutPrefix(text, ReasonSignature); ok {
		failed.Reason = ReasonSignature
		failed.Message = fmt.Sprintf("image pull failed for %s because the signature validation failed%s", r.c.Image, rest)
	}
	failed.RetryAfter = p.backoff.fail(r.key(), with, failed.Error())
	return failed
}

func (p *Puller) tell(of *v1.Pod, c *v1.Container, reason, format string, args ...any) {
	p.events.Eventf(pod.EventRef(of, c.Name), v1.EventTypeNormal, reason, format, args...)
}

func (p *Puller) warn(of *v1.Pod, c *v1.Container, reason, format string, args ...any) {
	p.events.Eventf(pod.EventRef(of, c.Name), v1.EventTypeWarning, reason, format, args...)
}
