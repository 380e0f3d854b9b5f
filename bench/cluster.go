package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"swiftlet/test/bed"
)

// cluster is a bed with one node per subject.
type cluster struct {
	bed      *bed.Bed
	client   kubernetes.Interface
	config   *rest.Config
	subjects []subject
	answers  *probeServer
	program  string // the Swiftlet that is measured

	cancel context.CancelFunc
	parts  sync.WaitGroup
	closes []func() error
}

// openCluster starts the bed and the kubelets. program is the Swiftlet that is measured.
func openCluster(ctx context.Context, progress io.Writer, program string) (*cluster, error) {
	b, err := bed.Start(ctx, progress)
	if err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &cluster{bed: b, cancel: cancel, program: program, config: rest.CopyConfig(b.ControlPlane.Config)}
	if err := c.open(ctx, background); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *cluster) open(ctx, background context.Context) (err error) {
	c.config.ContentType = runtime.ContentTypeProtobuf // cheaper to read than JSON
	if c.client, err = kubernetes.NewForConfig(c.config); err != nil {
		return err
	}
	if err := c.bed.UseKubelet(c.program); err != nil {
		return err
	}
	if err := c.makeNamespace(ctx); err != nil {
		return err
	}
	if c.answers, err = startProbeServer(c.bed.Gateway()); err != nil {
		return err
	}
	c.closes = append(c.closes, c.answers.Close)
	for _, add := range []func(context.Context, context.Context) (subject, error){c.addBare, c.addKubelet(bed.Reference), c.addKubelet(bed.Ours)} {
		s, err := add(ctx, background)
		if err != nil {
			return err
		}
		c.subjects = append(c.subjects, s)
	}
	return nil
}

// makeNamespace creates the namespace and waits for its service account, which pods need.
func (c *cluster) makeNamespace(ctx context.Context) error {
	if _, err := c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	for {
		_, err := c.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("make namespace: %w", err)
		}
	}
}

func (c *cluster) addBare(ctx, background context.Context) (subject, error) {
	box, err := c.bed.AddNode(ctx, Bare)
	if err != nil {
		return nil, err
	}
	connection, err := dialRuntime(box)
	if err != nil {
		return nil, err
	}
	c.closes = append(c.closes, connection.Close)
	client := runtimeapi.NewRuntimeServiceClient(connection)
	b := &bare{box: box, runtime: client, pods: map[types.UID]*barePod{}, exits: &exits{runtime: client, waits: map[string]chan struct{}{}}}
	c.run(background, b.exits.Run)
	return b, nil
}

func (c *cluster) addKubelet(kind bed.KubeletKind) func(ctx, background context.Context) (subject, error) {
	return func(ctx, background context.Context) (subject, error) {
		box, err := c.bed.AddNode(ctx, string(kind))
		if err != nil {
			return nil, err
		}
		connection, err := dialRuntime(box)
		if err != nil {
			return nil, err
		}
		c.closes = append(c.closes, connection.Close)
		https, err := c.nodeClient()
		if err != nil {
			return nil, err
		}
		k := &kubelet{
			kind: kind, box: box, config: c.config, client: c.client, https: https,
			pods: newPodWatch(c.client, box.Name()), runtime: runtimeapi.NewRuntimeServiceClient(connection),
		}
		c.run(background, k.pods.Run)
		return k, k.startKubelet(ctx, bed.KubeletOptions{})
	}
}

// nodeClient returns a client of the kubelets' ports. Their certificates are of the bed's authority,
// like the API server's.
func (c *cluster) nodeClient() (*http.Client, error) {
	config := rest.CopyConfig(c.config)
	config.ContentType = ""
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, fmt.Errorf("make client of kubelets: %w", err)
	}
	return &http.Client{Transport: transport}, nil
}

// run starts a part that runs until Close.
func (c *cluster) run(ctx context.Context, part func(context.Context) error) {
	c.parts.Go(func() { _ = part(ctx) }) // parts end only with their context
}

// Close stops everything.
func (c *cluster) Close() error {
	c.cancel()
	var errs []error
	for _, one := range c.closes {
		errs = append(errs, one())
	}
	c.parts.Wait()
	return errors.Join(append(errs, c.bed.Close())...)
}

// settle waits until the machine is quiet, for a while at most: the end of one experiment must not
// disturb the next.
func settle(ctx context.Context) error {
	const (
		step  = 500 * time.Millisecond
		limit = 8 * time.Second
		quiet = 0.1 // of one core
	)
	for began := time.Now(); time.Since(began) < limit; {
		before, err := machineCPU()
		if err != nil {
			return err
		}
		if err := sleep(ctx, step); err != nil {
			return err
		}
		after, err := machineCPU()
		if err != nil {
			return err
		}
		if (after - before).Seconds() < quiet*step.Seconds() {
			return nil
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
