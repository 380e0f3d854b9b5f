package e2e

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// TestCorrectedPullSecret: when a wrong pull secret is corrected, the next pull starts at once, without
// the rest of the back-off.
func TestCorrectedPullSecret(t *testing.T) {
	t.Parallel()
	in, node := namespace(t), steadyNode(t)
	image := privateImage(t)
	wrong := image
	wrong.password = "guessed"
	secret := wrong.secret(t, in, "key")
	create(t, in, podWithImage("p", node.Name(), image.name, corev1.PullIfNotPresent, secret))
	awaitPod(t, in, "p", timeout, waitsWith("ImagePullBackOff"))
	awaitPullEvents(t, in, "p", image, []string{
		"Normal Pulling: Pulling image IMAGE",
		"Warning Failed: Failed to pull image IMAGE: failed to pull and unpack image IMAGE: failed to resolve image: unexpected status from HEAD request to https://HOST/v2/team/app/manifests/1: 401 Unauthorized",
		"Warning Failed: Error: ErrImagePull",
		"Normal BackOff: Back-off pulling image IMAGE",
		"Warning Failed: Error: ImagePullBackOff",
	})

	pulled := image.awaitLogin()
	corrected := time.Now()
	update := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret}, Type: corev1.SecretTypeDockerConfigJson, Data: image.login(t),
	}
	if _, err := client().CoreV1().Secrets(in).Update(t.Context(), update, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitPod(t, in, "p", timeout, ready)
	limit := 5 * time.Second
	if kubelet == bed.Reference {
		limit = timeout // the reference waits for the back-off
	}
	if took := (<-pulled).Sub(corrected); took > limit {
		t.Errorf("the next pull began %v after the secret was corrected, want at most %v", took, limit)
	}
}

// awaitLogin returns a channel that gets the time of the next request with the image's password.
func (i registryImage) awaitLogin() <-chan time.Time {
	first := make(chan time.Time, 1)
	i.registry.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, password, _ := r.BasicAuth(); password == i.password {
				select {
				case first <- time.Now():
				default:
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	return first
}

// TestSlowRegistry: a slow registry delays only pods that pull from it.
func TestSlowRegistry(t *testing.T) {
	t.Parallel()
	in, node := namespace(t), steadyNode(t)
	image := privateImage(t)
	released := make(chan struct{})
	image.registry.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				select {
				case <-released:
				case <-r.Context().Done():
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	create(t, in, podWithImage("slow", node.Name(), image.name, corev1.PullIfNotPresent, image.secret(t, in, "key")))
	awaitEvent(t, in, "slow", `Pulling image "`+image.name+`"`)
	create(t, in, sleeper("other", node.Name()))
	awaitPod(t, in, "other", timeout, ready)
	awaitPod(t, in, "slow", timeout, waitsWith("ContainerCreating"))
	awaitPullEvents(t, in, "slow", image, []string{"Normal Pulling: Pulling image IMAGE"})
	close(released)
	awaitPod(t, in, "slow", timeout, ready)
	awaitPullEvents(t, in, "slow", image, []string{
		"Normal Pulling: Pulling image IMAGE",
		"Normal Pulled: Successfully pulled image IMAGE in TIME (TIME including waiting). Image size: SIZE bytes.",
		"Normal Created: Container created",
		"Normal Started: Container started",
	})
}

// TestCorruptLayer: a layer with the wrong content is never used. Once the registry is repaired, the
// pod starts.
func TestCorruptLayer(t *testing.T) {
	t.Parallel()
	in, node := namespace(t), steadyNode(t)
	image := privateImage(t)
	layer, err := random.Layer(1<<10, types.DockerLayer)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := layer.Digest()
	if err != nil {
		t.Fatal(err)
	}
	image.name = image.push(t, "team/layered:1", layer)
	image.registry.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/blobs/"+digest.String()) {
				w = &flipper{ResponseWriter: w}
			}
			next.ServeHTTP(w, r)
		})
	})
	create(t, in, podWithImage("p", node.Name(), image.name, corev1.PullIfNotPresent, image.secret(t, in, "key")))
	awaitPod(t, in, "p", timeout, waitsWith("ImagePullBackOff"))
	awaitPullEvents(t, in, "p", image, []string{
		"Normal Pulling: Pulling image IMAGE",
		`Warning Failed: Failed to pull image IMAGE: rpc error: code = FailedPrecondition desc = failed to pull and unpack image IMAGE: failed commit on ref "layer-DIGEST": unexpected commit digest DIGEST, expected DIGEST: failed precondition`,
		"Warning Failed: Error: ErrImagePull",
		"Normal BackOff: Back-off pulling image IMAGE",
		"Warning Failed: Error: ImagePullBackOff",
	})
	image.registry.Intercept(nil)
	awaitPod(t, in, "p", timeout, ready)
}

// flipper inverts every byte that is written through it.
type flipper struct{ http.ResponseWriter }

func (f *flipper) Write(data []byte) (int, error) {
	flipped := make([]byte, len(data))
	for i, b := range data {
		flipped[i] = ^b
	}
	return f.ResponseWriter.Write(flipped)
}

var variable = []struct {
	pattern *regexp.Regexp
	stands  string
}{
	{regexp.MustCompile(`\b(?:\d+m)?\d+(?:\.\d+)?m?s\b`), "TIME"},
	{regexp.MustCompile(`size: \d+ bytes`), "size: SIZE bytes"},
	{regexp.MustCompile(`sha256:[0-9a-f]{64}`), "DIGEST"},
	{regexp.MustCompile(`size \d+\b`), "size N"},
}

// awaitPullEvents waits until the pod has exactly these events of the kubelet, without duplicates.
// IMAGE stands for the quoted name of the image and HOST for its registry.
func awaitPullEvents(t *testing.T, in, pod string, of registryImage, want []string) {
	t.Helper()
	want = slices.Sorted(slices.Values(want))
	eventually(t, timeout, func() string {
		list, err := client().CoreV1().Events(in).List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + pod})
		if err != nil {
			return err.Error()
		}
		var events []string
		for _, e := range list.Items {
			if e.Source.Component != "kubelet" {
				continue
			}
			text := strings.ReplaceAll(strings.ReplaceAll(e.Message, strconv.Quote(of.name), "IMAGE"), of.host, "HOST")
			for _, v := range variable {
				text = v.pattern.ReplaceAllString(text, v.stands)
			}
			events = append(events, e.Type+" "+e.Reason+": "+text)
		}
		slices.Sort(events)
		return cmp.Diff(want, slices.Compact(events))
	})
}
