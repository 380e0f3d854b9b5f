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

// volumeChurn is the size of the test. SWIFTLET_VOLUME_CHURN=1000 is the full size; the default is smaller.
type volumeChurn struct {
	pods   int // in total
	atOnce int // maximum number at a time
	lives  int // average number of pods that are deleted between two kills
}

func volumeChurnSize(t *testing.T) volumeChurn {
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

// TestVolumeChurn creates and deletes pods with volumes of every kind while agent and CSI driver are killed at
// random. At the end there are no mounts and directories left, the driver has nothing staged or published, and
// the files of hostPath volumes are unchanged.
func TestVolumeChurn(t *testing.T) {
	if kubelet != bed.Ours {
		t.Skip("tests only our kubelet")
	}
	t.Parallel()
	node, in, size := ownNode(t, "volume-churn"), namespace(t), volumeChurnSize(t)
	hostFilesChanged := watchHostFiles(t, node)
	serveNFS(t, node)
	d := startDriver(t, node, "churn.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), PodInfoOnMount: ptr.To(true)})
	awaitDriver(t, d)
	volumeSet := createVolumes(t, in, d)
	before := podResources(t, node)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %+v", seed, size)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	killed, ends := make(chan struct{}), make(chan struct{}, size.pods)
	go func() {
		defer close(killed)
		killAtRandom(t, ctx, d, ends, size.lives, rand.New(rand.NewPCG(seed, 1)))
	}()
	began := time.Now()
	runPods(t, size, func(i int) error {
		defer func() { ends <- struct{}{} }()
		random := rand.New(rand.NewPCG(seed, uint64(i)+2))
		return createAndDeletePod(t.Context(), in, volumeSet.pod(fmt.Sprintf("v%d", i), node.Name(), random), random)
	})
	stop()
	<-killed
	t.Logf("%d pods in %v", size.pods, time.Since(began).Round(time.Second))

	awaitNothingLeft(t, in, node, before)
	eventually(t, 2*time.Minute, d.leftovers)
	eventually(t, timeout, d.stagedOrPublished)
	if missing := hostFilesChanged(); missing != "" {
		t.Error(missing)
	}
}

// runPods calls life for each pod, several at a time.
func runPods(t *testing.T, size volumeChurn, life func(i int) error) {
	numbers := make(chan int)
	var lives sync.WaitGroup
	for range size.atOnce {
		lives.Go(func() {
			for i := range numbers {
				if err := life(i); err != nil {
					t.Errorf("pod v%d: %v", i, err)
				}
			}
		})
	}
	for i := range size.pods {
		if t.Failed() {
			break
		}
		numbers <- i
	}
	close(numbers)
	lives.Wait()
}

// churnTimeout is the limit for a pod while the agent is killed repeatedly.
const churnTimeout = 4 * time.Minute

// createAndDeletePod creates a pod and deletes it: mostly when it is ready, else at a random time before.
func createAndDeletePod(ctx context.Context, in string, pod *corev1.Pod, random *rand.Rand) error {
	api := client().CoreV1().Pods(in)
	if _, err := api.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return err
	}
	if random.IntN(3) > 0 {
		if _, err := awaitErr(ctx, pods(in), pod.Name, churnTimeout, ready); err != nil {
			return err
		}
	} else {
		time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
	}
	// Half of them are force-deleted.
	grace := int64(random.IntN(2))
	if err := api.Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err := awaitErr(ctx, pods(in), pod.Name, churnTimeout, gone)
	return err
}

// killAtRandom kills and restarts the agent, the driver or both, and leaves them running. The time depends on
// the number of deleted pods: otherwise there would be more kills than pods on a busy machine.
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
			t.Errorf("kill and restart: %v", err)
			return
		}
	}
}
