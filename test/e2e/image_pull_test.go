package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
)

// A pod whose pull secret is wrong pulls as soon as it is right: it does not sit out the
// wait for the failure, which was that of other credentials.
func TestAPullSecretIsRightedWhileThePodWaits(t *testing.T) {
	t.Parallel()
	in, node := namespace(t), steadyNode(t)
	image := privateImage(t)
	wrong := image
	wrong.password = "guessed"
	secret := wrong.secret(t, in, "key")
	create(t, in, asks("p", node.Name(), image.name, corev1.PullIfNotPresent, secret))
	awaitPod(t, in, "p", usual, waitsWith("ImagePullBackOff"))

	righted := time.Now()
	update := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secret}, Type: corev1.SecretTypeDockerConfigJson, Data: image.login(t),
	}
	if _, err := client().CoreV1().Secrets(in).Update(t.Context(), update, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := awaitPod(t, in, "p", usual, ready)
	limit := 5 * time.Second
	if kubelet == bed.Reference {
		limit = usual // waits for 10 s and more
	}
	if took := p.Status.ContainerStatuses[0].State.Running.StartedAt.Sub(righted); took > limit {
		t.Errorf("the container started %v after the secret was righted, want %v at most", took, limit)
	}
}

// A registry that takes its time holds up only those who need something from it.
func TestASlowRegistry(t *testing.T) {
	t.Parallel()
	in, node := namespace(t), steadyNode(t)
	image := privateImage(t)
	let := make(chan struct{})
	image.registry.Disturb(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				select {
				case <-let:
				case <-r.Context().Done():
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	create(t, in, asks("slow", node.Name(), image.name, corev1.PullIfNotPresent, image.secret(t, in, "key")))
	awaitEvent(t, in, "slow", `Pulling image "`+image.name+`"`)
	create(t, in, sleeper("other", node.Name()))
	awaitPod(t, in, "other", usual, ready)
	awaitPod(t, in, "slow", usual, waitsWith("ContainerCreating"))
	close(let)
	awaitPod(t, in, "slow", usual, ready)
}

// A layer that is not what it should be is never run; once the registry is mended the pod
// goes on by itself.
func TestACorruptLayer(t *testing.T) {
	t.Parallel()
	in, node := namespace(t), steadyNode(t)
	image := privateImage(t)
	image.registry.Disturb(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				w = &flipper{ResponseWriter: w}
			}
			next.ServeHTTP(w, r)
		})
	})
	create(t, in, asks("p", node.Name(), image.name, corev1.PullIfNotPresent, image.secret(t, in, "key")))
	awaitPod(t, in, "p", usual, waitsWith("ErrImagePull", "ImagePullBackOff"))
	awaitEvent(t, in, "p", `Failed to pull image "`+image.name+`"`)
	image.registry.Disturb(nil)
	awaitPod(t, in, "p", usual, ready)
}

// flipper changes every byte that is written through it.
type flipper struct{ http.ResponseWriter }

func (f *flipper) Write(data []byte) (int, error) {
	flipped := make([]byte, len(data))
	for i, b := range data {
		flipped[i] = ^b
	}
	return f.ResponseWriter.Write(flipped)
}
