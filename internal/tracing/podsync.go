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

// Podsync wraps the dependencies that start a pod, so that each operation is a span.
func (p *Provider) Podsync(deps *podsync.Deps) {
	deps.Images = tracedImages{deps.Images, p.tracer()}
	deps.Volumes = tracedVolumes{deps.Volumes, p.tracer()}
	deps.Runtime = tracedRuntime{deps.Runtime, p.tracer()}
}

type tracedImages struct {
	podsync.Images
	tracer trace.Tracer
}

func (i tracedImages) Ensure(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox image.Sandbox) (image.Image, error) {
	ctx, done := startSpan(ctx, i.tracer, "ensureImage", containerName(c.Name), attribute.String("container.image.name", c.Image))
	found, err := i.Images.Ensure(ctx, p, c, sandbox)
	done(err)
	return found, err
}

type tracedVolumes struct {
	podsync.Volumes
	tracer trace.Tracer
}

func (v tracedVolumes) Mount(ctx context.Context, p *v1.Pod) (map[string]volume.Mounted, error) {
	ctx, done := startSpan(ctx, v.tracer, "mountVolumes")
	mounted, err := v.Volumes.Mount(ctx, p)
	done(err)
	return mounted, err
}

type tracedRuntime struct {
	podsync.Runtime
	tracer trace.Tracer
}

func (r tracedRuntime) CreateSandbox(ctx context.Context, s *runtime.Sandbox) (string, []string, error) {
	ctx, done := startSpan(ctx, r.tracer, "createSandbox")
	id, ips, err := r.Runtime.CreateSandbox(ctx, s)
	done(err)
	return id, ips, err
}

func (r tracedRuntime) CreateContainer(ctx context.Context, c *runtime.Container) (string, error) {
	ctx, done := startSpan(ctx, r.tracer, "createContainer", containerName(c.Name))
	id, err := r.Runtime.CreateContainer(ctx, c)
	done(err)
	return id, err
}

func (r tracedRuntime) StartContainer(ctx context.Context, p *v1.Pod, c *v1.Container, id string, restartCount int, podIPs []string) error {
	ctx, done := startSpan(ctx, r.tracer, "startContainer", containerName(c.Name))
	err := r.Runtime.StartContainer(ctx, p, c, id, restartCount, podIPs)
	done(err)
	return err
}
