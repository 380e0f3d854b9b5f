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

// As many pulls are underway as the configuration allows, and never one more: the registry
// counts them. A pull too many within a second fails, and says so.
func TestPullsAtATime(t *testing.T) {
	t.Parallel()
	node := bareNode(t, "pulling")
	image := privateImageFor(t, node)
	for i, c := range []struct {
		name, config string
		most         int
	}{
		{"one", "serializeImagePulls: true", 1},
		{"two", "{serializeImagePulls: false, maxParallelImagePulls: 2}", 2},
		{"as many as containerd fetches", "serializeImagePulls: false", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := clearedNamespace(t)
			configure(t, node, c.config)
			watched := holdBlobs(t, image.registry, "")
			secret := image.secret(t, in, "key")
			var names []string
			for k := range 4 {
				name := fmt.Sprintf("p%d", k)
				create(t, in, asks(name, node.Name(), image.push(t, fmt.Sprintf("case%d/%s:1", i, name)), corev1.PullIfNotPresent, secret))
				names = append(names, name)
			}
			for _, name := range names { // each has begun, as far as its pod is concerned
				awaitEvent(t, in, name, "Pulling image")
			}
			watched.await(t, c.most)
			watched.release()
			for _, name := range names {
				awaitPod(t, in, name, usual, ready)
			}
			if _, most := watched.pulls(); most != c.most {
				t.Errorf("%d pulls at a time, want %d", most, c.most)
			}
		})
	}
	t.Run("a slow one holds up nobody", func(t *testing.T) { // with the last configuration
		in := clearedNamespace(t)
		watched := holdBlobs(t, image.registry, "/slow/")
		secret := image.secret(t, in, "key")
		create(t, in, asks("slow", node.Name(), image.push(t, "slow/app:1"), corev1.PullIfNotPresent, secret))
		watched.await(t, 1)
		create(t, in, asks("other", node.Name(), image.push(t, "other/app:1"), corev1.PullIfNotPresent, secret))
		awaitPod(t, in, "other", usual, ready)
		watched.release()
		awaitPod(t, in, "slow", usual, ready)
	})
	t.Run("too fast", func(t *testing.T) {
		in := clearedNamespace(t)
		configure(t, node, "{serializeImagePulls: false, registryPullQPS: 1, registryBurst: 1}")
		holdBlobs(t, image.registry, "") // the first is underway while the others fail
		secret := image.secret(t, in, "key")
		for i := range 4 {
			name := fmt.Sprintf("p%d", i)
			create(t, in, asks(name, node.Name(), image.push(t, "fast/"+name+":1"), corev1.PullIfNotPresent, secret))
		}
		hasty := ""
		eventually(t, usual, func() string {
			for i := range 4 {
				name := fmt.Sprintf("p%d", i)
				p, err := client().CoreV1().Pods(in).Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					return err.Error()
				}
				if waitsWith("ErrImagePull", "ImagePullBackOff")(p) == "" {
					hasty = name
					return ""
				}
			}
			return "no pod waits"
		})
		named := image
		named.name = image.host + "/fast/" + hasty + ":1"
		awaitPullEvents(t, in, hasty, named, []string{
			"Normal Pulling: Pulling image IMAGE",
			"Warning Failed: Failed to pull image IMAGE: pull QPS exceeded",
			"Warning Failed: Error: ErrImagePull",
			"Normal BackOff: Back-off pulling image IMAGE",
			"Warning Failed: Error: ImagePullBackOff",
		})
	})
}

// configure starts the node's kubelet anew with this on top of its usual configuration.
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

// heldBlobs counts the pulls at a registry by the requests that it keeps waiting.
type heldBlobs struct {
	release func()

	mu   sync.Mutex
	now  map[string]int // requests by the image
	most int            // images at a time
}

// holdBlobs has a registry answer no request for the content of images below a path until it
// is told to, or the test ends.
func holdBlobs(t *testing.T, registry *bed.Registry, path string) *heldBlobs {
	let := make(chan struct{})
	h := &heldBlobs{release: sync.OnceFunc(func() { close(let) }), now: map[string]int{}}
	t.Cleanup(h.release)
	registry.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if image, _, ok := strings.Cut(r.URL.Path, "/blobs/"); ok && r.Method == http.MethodGet && strings.Contains(image, path) {
				h.count(image, 1)
				defer h.count(image, -1)
				select {
				case <-let:
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
	h.most = max(h.most, len(h.now))
}

// await waits until so many images are being asked for.
func (h *heldBlobs) await(t *testing.T, want int) {
	t.Helper()
	eventually(t, usual, func() string {
		if now, _ := h.pulls(); now != want {
			return fmt.Sprintf("%d pulls at the registry, want %d", now, want)
		}
		return ""
	})
}

// pulls is how many images are being asked for, and how many at a time there were at most.
func (h *heldBlobs) pulls() (now, most int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.now), h.most
}
