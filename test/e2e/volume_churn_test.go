package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
)

// volumeChurn is how much is made and unmade: SWIFTLET_VOLUME_CHURN=1000 is the whole of
// it, an ordinary run takes a taste.
type volumeChurn struct {
	pods   int // in all
	atOnce int // at most
	lives  int // that end between two kills, on average
}

func ofVolumeChurn(t *testing.T) volumeChurn {
	t.Helper()
	text := os.Getenv("SWIFTLET_VOLUME_CHURN")
	if text == "" {
		return volumeChurn{pods: 40, atOnce: 12, lives: 6}
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return volumeChurn{pods: n, atOnce: 40, lives: 12}
}

// Pods with volumes of every kind come and go while the agent and the CSI driver are killed
// at random. At the end nothing is mounted and no folder is left, the driver has nothing
// staged or published, and what pods only looked at is as it was.
func TestVolumeChurn(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("a trial of our own")
	}
	t.Parallel()
	node, in, how := ownNode(t, "volume-churn"), namespace(t), ofVolumeChurn(t)
	alive := canaries(t, node)
	serveNFS(t, node)
	d := startDriver(t, node, "churn.csi.test")
	describeDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), PodInfoOnMount: ptr.To(true)})
	awaitDriver(t, d)
	shelf := stock(t, in, d)
	before := leavings(t, node)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %+v", seed, how)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	killed, ends := make(chan struct{}), make(chan struct{}, how.pods)
	go func() {
		defer close(killed)
		killAtRandom(t, ctx, d, ends, how.lives, rand.New(rand.NewPCG(seed, 1)))
	}()
	began := time.Now()
	liveAndDie(t, how, func(i int) error {
		defer func() { ends <- struct{}{} }()
		random := rand.New(rand.NewPCG(seed, uint64(i)+2))
		return lifeOf(t.Context(), in, shelf.pod(fmt.Sprintf("v%d", i), node.Name(), random), random)
	})
	stop()
	<-killed
	t.Logf("%d pods in %v", how.pods, time.Since(began).Round(time.Second))

	nothingLeft(t, in, node, before)
	eventually(t, 2*time.Minute, d.traces)
	eventually(t, usual, d.holds)
	if missing := alive(); missing != "" {
		t.Error(missing)
	}
}

// liveAndDie leads all pods through their lives, some at a time.
func liveAndDie(t *testing.T, how volumeChurn, life func(i int) error) {
	numbers := make(chan int)
	var lives sync.WaitGroup
	for range how.atOnce {
		lives.Go(func() {
			for i := range numbers {
				if err := life(i); err != nil {
					t.Errorf("pod v%d: %v", i, err)
				}
			}
		})
	}
	for i := range how.pods {
		if t.Failed() {
			break
		}
		numbers <- i
	}
	close(numbers)
	lives.Wait()
}

// patience is how long a pod may take while the agent is killed over and over.
const patience = 4 * time.Minute

// lifeOf makes a pod and deletes it: mostly when it is ready, else at any moment before.
func lifeOf(ctx context.Context, in string, pod *corev1.Pod, random *rand.Rand) error {
	api := client().CoreV1().Pods(in)
	if _, err := api.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if random.IntN(3) > 0 {
		if _, err := seek(ctx, pods(in), pod.Name, patience, ready); err != nil {
			return err
		}
	} else {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
	}
	// Half of them are gone from the API server before the node knows.
	grace := int64(random.IntN(2))
	if err := api.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err := seek(ctx, pods(in), pod.Name, patience, gone)
	return err
}

// killAtRandom ends the agent, and now and then the driver or both, without warning, and
// leaves them running. It goes by how many pods have ended, not by the clock alone: a busy
// machine would see more deaths than lives.
func killAtRandom(t *testing.T, ctx context.Context, d *csiDriver, ends <-chan struct{}, mean int, random *rand.Rand) {
	agents, drivers := 0, 0
	defer func() { t.Logf("killed the agent %d times, the driver %d times", agents, drivers) }()
	for {
		for range random.IntN(2 * mean) {
			select {
			case <-ctx.Done():
				return
			case <-ends:
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(random.IntN(2000)) * time.Millisecond):
		}
		var errs []error
		chance := random.IntN(4)
		if chance > 0 {
			agents++
			errs = append(errs, d.node.KillKubelet())
		}
		if chance < 2 {
			drivers++
			d.kill()
			<-d.done
			errs = append(errs, d.launch())
		}
		if chance > 0 {
			errs = append(errs, d.node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet}))
		}
		if err := errors.Join(errs...); err != nil {
			t.Errorf("kill and start again: %v", err)
			return
		}
	}
}
