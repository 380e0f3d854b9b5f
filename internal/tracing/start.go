package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/internal/image"
	"swiftlet/internal/podsync"
	"swiftlet/internal/volume"
)

// Start stands around what a pod's start is made of, so that each part is a span.
func (p *Provider) Start(deps *podsync.Deps) {
	deps.Images = images{deps.Images, p.tracer()}
	deps.Volumes = volumes{deps.Volumes, p.tracer()}
	deps.Runtime = runtime{deps.Runtime, p.tracer()}
}

type images struct {
	podsync.Images
	tracer trace.Tracer
}

func (i images) Ensure(ctx context.Context, p *v1.Pod, c *v1.Container, sandbox *runtimeapi.PodSandboxConfig) (image.Image, error) {
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

type runtime struct {
	podsync.Runtime
	tracer trace.Tracer
}

func (r runtime) CreateSandbox(ctx context.Context, p *v1.Pod, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	ctx, done := start(ctx, r.tracer, "createSandbox")
	id, err := r.Runtime.CreateSandbox(ctx, p, config, handler)
	done(err)
	return id, err
}

func (r runtime) CreateContainer(ctx context.Context, p *v1.Pod, sandboxID string, config *runtimeapi.ContainerConfig, sandbox *runtimeapi.PodSandboxConfig, podIPs []string) (string, error) {
	ctx, done := start(ctx, r.tracer, "createContainer", container(config.GetMetadata().GetName()))
	id, err := r.Runtime.CreateContainer(ctx, p, sandboxID, config, sandbox, podIPs)
	done(err)
	return id, err
}

func (r runtime) StartContainer(ctx context.Context, p *v1.Pod, c *v1.Container, id string, restartCount int, podIPs []string) error {
	ctx, done := start(ctx, r.tracer, "startContainer", container(c.Name))
	err := r.Runtime.StartContainer(ctx, p, c, id, restartCount, podIPs)
	done(err)
	return err
}
