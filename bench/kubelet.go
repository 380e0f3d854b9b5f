package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/bed"
)

// kubelet is a node with a kubelet, driven through the API server.
type kubelet struct {
	kind    bed.KubeletKind
	box     *bed.Box
	config  *rest.Config
	client  kubernetes.Interface
	https   *http.Client // of the kubelet's port
	pods    *podWatch
	runtime runtimeapi.RuntimeServiceClient // to find the processes of containers
}

func (k *kubelet) name() string   { return string(k.kind) }
func (k *kubelet) node() *bed.Box { return k.box }

// startKubelet starts the kubelet and waits until the node is ready.
func (k *kubelet) startKubelet(ctx context.Context, options bed.KubeletOptions) error {
	options.Kind = k.kind
	if err := k.box.StartKubelet(ctx, options); err != nil {
		return err
	}
	return k.box.WaitReady(ctx)
}

// restart stops the kubelet and starts it with these options.
func (k *kubelet) restart(ctx context.Context, options bed.KubeletOptions) error {
	if err := k.box.StopKubelet(); err != nil {
		return err
	}
	return k.startKubelet(ctx, options)
}

func (k *kubelet) create(ctx context.Context, p *corev1.Pod) error {
	p = p.DeepCopy()
	p.UID, p.Spec.NodeName = "", k.box.Name() // no scheduler in between
	_, err := k.client.CoreV1().Pods(namespace).Create(ctx, p, metav1.CreateOptions{})
	return err
}

func (k *kubelet) start(ctx context.Context, pods []*corev1.Pod) (spans, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return together(pods, func(p *corev1.Pod) (began, ended time.Time, err error) {
		ready := k.pods.expect(p.Name, isReady)
		began = time.Now()
		if err = k.create(ctx, p); err == nil {
			ended, err = ready.at(ctx)
		}
		return began, ended, err
	})
}

func (k *kubelet) delete(ctx context.Context, pods []*corev1.Pod) (spans, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	return together(pods, func(p *corev1.Pod) (began, ended time.Time, err error) {
		gone := k.pods.expect(p.Name, isGone)
		began = time.Now()
		if err = k.client.CoreV1().Pods(namespace).Delete(ctx, p.Name, metav1.DeleteOptions{}); err == nil {
			ended, err = gone.at(ctx)
		}
		return began, ended, err
	})
}

// crash measures until the API has the restarted container as running.
func (k *kubelet) crash(ctx context.Context, p *corev1.Pod) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	status := k.pods.get(p.Name)
	if status == nil || len(status.Status.ContainerStatuses) == 0 {
		return 0, fmt.Errorf("crash %s: it has no containers", p.Name)
	}
	pid, err := containerPID(ctx, k.runtime, status.Status.ContainerStatuses[0].ContainerID)
	if err != nil {
		return 0, err
	}
	again := k.pods.expect(p.Name, func(p *corev1.Pod) bool {
		return p != nil && p.Status.ContainerStatuses[0].RestartCount > 0 && p.Status.ContainerStatuses[0].State.Running != nil
	})
	began := time.Now()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return 0, fmt.Errorf("crash %s: %w", p.Name, err)
	}
	ended, err := again.at(ctx)
	return ended.Sub(began), err
}

// exec goes through the API server, as kubectl exec does.
func (k *kubelet) exec(ctx context.Context, p *corev1.Pod, command ...string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	url := k.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(p.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
	began := time.Now()
	executor, err := remotecommand.NewWebSocketExecutor(k.config, http.MethodGet, url.String())
	if err != nil {
		return 0, fmt.Errorf("exec: %w", err)
	}
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: io.Discard, Stderr: io.Discard})
	return time.Since(began), err
}

// get reads a path of the kubelet's port and returns the body.
func (k *kubelet) get(ctx context.Context, path string) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://%s:10250%s", k.box.Address(), path), nil)
	if err != nil {
		return nil, err
	}
	answer, err := k.https.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s of %s: %s", path, k.name(), answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// clear deletes all pods and makes sure that the kubelet runs.
func (k *kubelet) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if _, err := k.box.KubeletPID(); err != nil {
		if err := k.startKubelet(ctx, bed.KubeletOptions{}); err != nil {
			return err
		}
	}
	var waits []*podWait
	for _, name := range k.pods.names() {
		gone := k.pods.expect(name, isGone)
		err := k.client.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		waits = append(waits, gone)
	}
	for _, gone := range waits {
		if _, err := gone.at(ctx); err != nil {
			return err
		}
	}
	return nil
}
