package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/bed"
)

// bare is a node without a kubelet. It makes the fewest CRI calls that start and end a pod, as early
// as the runtime allows: what no kubelet can be faster than.
type bare struct {
	box     *bed.Box
	runtime runtimeapi.RuntimeServiceClient
	exits   *exits

	mu   sync.Mutex
	pods map[types.UID]*barePod
}

// barePod is a pod in the runtime.
type barePod struct {
	sandbox    string
	config     *runtimeapi.PodSandboxConfig
	containers []string
}

func (b *bare) name() string   { return Bare }
func (b *bare) node() *bed.Box { return b.box }

func (b *bare) start(ctx context.Context, pods []*corev1.Pod) (spans, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return together(pods, func(p *corev1.Pod) (began, ended time.Time, err error) {
		began = time.Now()
		err = b.startPod(ctx, p)
		return began, time.Now(), err
	})
}

func (b *bare) startPod(ctx context.Context, p *corev1.Pod) error {
	started := &barePod{config: sandboxConfig(p)}
	answer, err := b.runtime.RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: started.config})
	if err != nil {
		return err
	}
	started.sandbox = answer.PodSandboxId
	b.mu.Lock()
	b.pods[p.UID] = started
	b.mu.Unlock()
	for _, c := range p.Spec.InitContainers {
		if err := b.runToEnd(ctx, started, &c); err != nil {
			return err
		}
	}
	// Containers are created at the same time and started in their order.
	started.containers = make([]string, len(p.Spec.Containers))
	errs := make([]error, len(p.Spec.Containers))
	var creating sync.WaitGroup
	for i := range p.Spec.Containers {
		creating.Go(func() { started.containers[i], errs[i] = b.createContainer(ctx, started, &p.Spec.Containers[i], 0) })
	}
	creating.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, id := range started.containers {
		if _, err := b.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
			return err
		}
	}
	return nil
}

// runToEnd runs an init container.
func (b *bare) runToEnd(ctx context.Context, p *barePod, c *corev1.Container) error {
	id, err := b.createContainer(ctx, p, c, 0)
	if err != nil {
		return err
	}
	ended := b.exits.expect(id)
	if _, err := b.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: id}); err != nil {
		return err
	}
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (b *bare) createContainer(ctx context.Context, p *barePod, c *corev1.Container, attempt uint32) (string, error) {
	answer, err := b.runtime.CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: p.sandbox, Config: containerConfig(c, attempt), SandboxConfig: p.config,
	})
	return answer.GetContainerId(), err
}

func (b *bare) delete(ctx context.Context, pods []*corev1.Pod) (spans, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return together(pods, func(p *corev1.Pod) (began, ended time.Time, err error) {
		began = time.Now()
		err = b.deletePod(ctx, p)
		return began, time.Now(), err
	})
}

func (b *bare) deletePod(ctx context.Context, p *corev1.Pod) error {
	started := b.pod(p)
	if started == nil {
		return fmt.Errorf("delete %s: not started", p.Name)
	}
	errs := make([]error, len(started.containers))
	var stopping sync.WaitGroup
	for i, id := range started.containers {
		stopping.Go(func() {
			_, errs[i] = b.runtime.StopContainer(ctx, &runtimeapi.StopContainerRequest{ContainerId: id, Timeout: *p.Spec.TerminationGracePeriodSeconds})
		})
	}
	stopping.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if _, err := b.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: started.sandbox}); err != nil {
		return err
	}
	// Removes the containers as well.
	if _, err := b.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: started.sandbox}); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pods, p.UID)
	return nil
}

func (b *bare) pod(p *corev1.Pod) *barePod {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.pods[p.UID]
}

func (b *bare) crash(ctx context.Context, p *corev1.Pod) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	started := b.pod(p)
	pid, err := containerPID(ctx, b.runtime, started.containers[0])
	if err != nil {
		return 0, err
	}
	ended := b.exits.expect(started.containers[0])
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("crash %s: %w", p.Name, err)
	}
	select {
	case <-ended:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	if started.containers[0], err = b.createContainer(ctx, started, &p.Spec.Containers[0], 1); err != nil {
		return 0, err
	}
	_, err = b.runtime.StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: started.containers[0]})
	return time.Since(began), err
}

func (b *bare) exec(ctx context.Context, p *corev1.Pod, command ...string) (time.Duration, error) {
	began := time.Now()
	_, err := b.runtime.ExecSync(ctx, &runtimeapi.ExecSyncRequest{ContainerId: b.pod(p).containers[0], Cmd: command})
	return time.Since(began), err
}

func (b *bare) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	list, err := b.runtime.ListPodSandbox(ctx, &runtimeapi.ListPodSandboxRequest{})
	if err != nil {
		return err
	}
	for _, sandbox := range list.Items {
		if _, err := b.runtime.StopPodSandbox(ctx, &runtimeapi.StopPodSandboxRequest{PodSandboxId: sandbox.Id}); err != nil {
			return err
		}
		if _, err := b.runtime.RemovePodSandbox(ctx, &runtimeapi.RemovePodSandboxRequest{PodSandboxId: sandbox.Id}); err != nil {
			return err
		}
	}
	return nil
}
