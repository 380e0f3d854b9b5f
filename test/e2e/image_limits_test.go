package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestParallelPulls: the kubelet makes as many pulls in parallel as configured; the registry counts
// them. A pull above the rate limit fails with an event.
func TestParallelPulls(t *testing.T) {
	t.Parallel()
	node := bareNode(t, "pulling")
	image := privateImageFor(t, node)
	for i, c := range []struct {
		name, config string
		maxPulls     int
	}{
		{"serialized pulls", "serializeImagePulls: true", 1},
		{"two parallel pulls", "{serializeImagePulls: false, maxParallelImagePulls: 2}", 2},
		{"limit of containerd", "serializeImagePulls: false", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := clearedNamespace(t)
			configure(t, node, c.config)
			watched := holdBlobs(t, image.registry, "")
			secret := image.secret(t, in, "key")
			var names []string
			for k := range 4 {
				name := fmt.Sprintf("p%d", k)
				create(t, in, podWithImage(name, node.Name(), image.push(t, fmt.Sprintf("case%d/%s:1", i, name)), corev1.PullIfNotPresent, secret))
				names = append(names, name)
			}
			for _, name := range names { // every pod has the event
				awaitEvent(t, in, name, "Pulling image")
			}
			watched.await(t, c.maxPulls)
			watched.release()
			for _, name := range names {
				awaitPod(t, in, name, timeout, ready)
			}
			if _, maxPulls := watched.pulls(); maxPulls != c.maxPulls {
				t.Errorf("%d parallel pulls, want %d", maxPulls, c.maxPulls)
			}
		})
	}
	t.Run("slow pull does not block others", func(t *testing.T) { // with the last configuration
		in := clearedNamespace(t)
		watched := holdBlobs(t, image.registry, "/slow/")
		secret := image.secret(t, in, "key")
		create(t, in, podWithImage("slow", node.Name(), image.push(t, "slow/app:1"), corev1.PullIfNotPresent, secret))
		watched.await(t, 1)
		create(t, in, podWithImage("other", node.Name(), image.push(t, "other/app:1"), corev1.PullIfNotPresent, secret))
		awaitPod(t, in, "other", timeout, ready)
		watched.release()
		awaitPod(t, in, "slow", timeout, ready)
	})
	t.Run("rate limit", func(t *testing.T) {
		in := clearedNamespace(t)
		configure(t, node, "{serializeImagePulls: false, registryPullQPS: 1, registryBurst: 1}")
		holdBlobs(t, image.registry, "") // the first is in progress while the others fail
		secret := image.secret(t, in, "key")
		for i := range 4 {
			name := fmt.Sprintf("p%d", i)
			create(t, in, podWithImage(name, node.Name(), image.push(t, "fast/"+name+":1"), corev1.PullIfNotPresent, secret))
		}
		failedPod := ""
		eventually(t, timeout, func() string {
			for i := range 4 {
				name := fmt.Sprintf("p%d", i)
				p, err := client().CoreV1().Pods(in).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				if waitsWith("ErrImagePull", "ImagePullBackOff")(p) == "" {
					failedPod = name
					return ""
				}
			}
			return "no pod has failed to pull"
		})
		named := image
		named.name = image.host + "/fast/" + failedPod + ":1"
		awaitPullEvents(t, in, failedPod, named, []string{
			"Normal Pulling: Pulling image IMAGE",
			"Warning Failed: Failed to pull image IMAGE: pull QPS exceeded",
			"Warning Failed: Error: ErrImagePull",
			"Normal BackOff: Back-off pulling image IMAGE",
			"Warning Failed: Error: ImagePullBackOff",
		})
	})
}

// configure restarts the node's kubelet with config merged into its default configuration.
func configure(t *testing.T, node *bed.Box, config string) {
	t.Helper()
	if err := node.StopKubelet(); err != nil {
		t.Fatal(err)
	}
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Config: config}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// heldBlobs blocks blob requests at a registry and counts the images.
type heldBlobs struct {
	release func()

	mu       sync.Mutex
	now      map[string]int // blocked requests by image
	maxPulls int            // maximum number of images at a time
}

// holdBlobs blocks blob requests for images below a path until release is called or the test ends.
func holdBlobs(t *testing.T, registry *bed.Registry, path string) *heldBlobs {
	released := make(chan struct{})
	h := &heldBlobs{release: sync.OnceFunc(func() { close(released) }), now: map[string]int{}}
	t.Cleanup(h.release)
	registry.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if image, _, ok := strings.Cut(r.URL.Path, "/blobs/"); ok && r.Method == http.MethodGet && strings.Contains(image, path) {
				h.count(image, 1)
				defer h.count(image, -1)
				select {
				case <-released:
				case <-r.Context().Done():
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	return h
}

func (h *heldBlobs) count(image string, more int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now[image] += more; h.now[image] == 0 {
		delete(h.now, image)
	}
	h.maxPulls = max(h.maxPulls, len(h.now))
}

// await waits until so many images are being pulled.
func (h *heldBlobs) await(t *testing.T, want int) {
	t.Helper()
	eventually(t, timeout, func() string {
		if now, _ := h.pulls(); now != want {
			return fmt.Sprintf("%d pulls at the registry, want %d", now, want)
		}
		return ""
	})
}

// pulls returns the number of images that are being pulled, and the maximum so far.
func (h *heldBlobs) pulls() (now, maxPulls int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.now), h.maxPulls
}
