package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"

	"swiftlet/internal/image"
	"swiftlet/internal/podsync"
	"swiftlet/internal/runtime"
	"swiftlet/internal/volume"
)

// Start stands around what a pod's start is made of, so that each part is a span.
func (p *Provider) Start(deps *podsync.Deps) {
	deps.Images = images{deps.Images, p.tracer()}
	deps.Volumes = volumes{deps.Volumes, p.tracer()}
	deps.Runtime = tracedRuntime{deps.Runtime, p.tracer()}
}

type images struct {
	podsync.Images
	tracer trace.Tracer
}

func (i images) Ensure(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox image.Sandbox) (image.Image, error) {
	ctx, done := start(ctx, i.tracer, "ensureImage", container(c.Name), attribute.String("container.image.name", c.Image))
	found, err := i.Images.Ensure(ctx, p, c, sandbox)
	done(err)
	return found, err
}

type volumes struct {
	podsync.Volumes
	tracer trace.Tracer
}

func (v volumes) Mount(ctx context.Context, p *v1.Pod) (map[string]volume.Mounted, error) {
	ctx, done := start(ctx, v.tracer, "mountVolumes")
	mounted, err := v.Volumes.Mount(ctx, p)
	done(err)
	return mounted, err
}

type tracedRuntime struct {
	podsync.Runtime
	tracer trace.Tracer
}

func (r tracedRuntime) CreateSandbox(ctx context.Context, s *runtime.Sandbox) (string, []string, error) {
	ctx, done := start(ctx, r.tracer, "createSandbox")
	id, ips, err := r.Runtime.CreateSandbox(ctx, s)
	done(err)
	return id, ips, err
}

func (r tracedRuntime) CreateContainer(ctx context.Context, c *runtime.Container) (string, error) {
	ctx, done := start(ctx, r.tracer, "createContainer", container(c.Name))
	id, err := r.Runtime.CreateContainer(ctx, c)
	done(err)
	return id, err
}

func (r tracedRuntime) StartContainer(ctx context.Context, p *v1.Pod, c *v1.Container, id string, restartCount int, podIPs []string) error {
	ctx, done := start(ctx, r.tracer, "startContainer", container(c.Name))
	err := r.Runtime.StartContainer(ctx, p, c, id, restartCount, podIPs)
	done(err)
	return err
}
