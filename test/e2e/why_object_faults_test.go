package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"swiftlet/test/images"
)

// imageFaults are faults of images and their registry.
func (w *whyPlace) imageFaults(of registryImage) []whyFault {
	key := of.secret(w.T, w.in, "registry")
	wrong := of
	wrong.password = "guessed"
	wrongKey := wrong.secret(w.T, w.in, "wrong")
	slow, corrupt := of.push(w.T, "team/slow:1"), of.push(w.T, "team/corrupt:1")
	noUser, absent := of.pushUser(w.T, "nobody2"), of.host+"/team/none:1"
	of.registry.Intercept(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
			switch {
			case strings.Contains(r.URL.Path, "/team/slow/blobs/"):
				<-r.Context().Done()
				return
			case strings.Contains(r.URL.Path, "/team/corrupt/blobs/"):
				answer = &flipper{answer}
			}
			next.ServeHTTP(answer, r)
		})
	})
	pulls := func(image, secret string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			container(p).Image, p.Spec.ImagePullSecrets = image, []corev1.LocalObjectReference{{Name: secret}}
		}
	}
	return []whyFault{
		{name: "image-absent", change: pulls(absent, key), step: `container c: image .+/team/none:1 does not exist in the registry \(.+\), since`, object: "spec.containers[0].image"},
		{name: "image-name", change: func(p *corev1.Pod) { container(p).Image = "Not A Name" }, step: `container c: image name "Not A Name" is invalid`, object: "spec.containers[0].image"},
		{name: "wrong-password", change: pulls(of.name, wrongKey), step: `container c: image .+/team/app:1 cannot be pulled \(.*401 Unauthorized.*\), since`, object: imageObjects},
		{name: "registry-slow", change: pulls(slow, key), step: `container c: image .+/team/slow:1 is being pulled, since`, object: "spec.containers[0].image or the registry, if it takes too long"},
		{name: "corrupt-layer", change: pulls(corrupt, key), step: `container c: image .+/team/corrupt:1 cannot be pulled \(.+\), since`, object: imageObjects},
		{name: "init-image-absent", change: func(p *corev1.Pod) {
			pulls(images.Busybox, key)(p)
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: absent}}
		}, step: `init container init: image .+/team/none:1 does not exist in the registry`, object: "spec.initContainers[0].image"},
		{name: "image-volume-absent", change: func(p *corev1.Pod) {
			mounts(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: absent}})(p)
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: key}}
		}, step: `volume data: image .+/team/none:1 does not exist in the registry`, object: "spec.volumes[0].image.reference"},
		{name: "image-user-unknown", change: pulls(noUser, key), step: `container c: it cannot be created \(.+user.+\), since`, object: "spec.containers[0]"},
	}
}

// pushUser pushes an image that runs as a user that it does not have.
func (i registryImage) pushUser(t *testing.T, user string) (name string) {
	t.Helper()
	image, err := cluster.Image(images.Busybox)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.User = user
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	if name, err = i.registry.Push(t.Context(), "team/user:1", image); err != nil {
		t.Fatal(err)
	}
	return name
}

// objectFaults are faults of objects that a pod refers to.
func (w *whyPlace) objectFaults() []whyFault {
	meta := metav1.ObjectMeta{Name: "empty"}
	if _, err := client().CoreV1().ConfigMaps(w.in).Create(w.Context(), &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if _, err := client().CoreV1().Secrets(w.in).Create(w.Context(), &corev1.Secret{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	named := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	variable := func(from corev1.EnvVarSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { container(p).Env = []corev1.EnvVar{{Name: "A", ValueFrom: &from}} }
	}
	return []whyFault{
		{name: "no-config-map-volume", change: mounts(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("none")}}),
			step: `volume data: ConfigMap [^ /]+/none does not exist, since`, object: "ConfigMap NAMESPACE/none, or spec.volumes[0]"},
		{name: "no-key-volume", change: mounts(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: named("empty"), Items: []corev1.KeyToPath{{Key: "a", Path: "a"}}}}),
			step: `volume data: there is no key a in ConfigMap [^ /]+/empty, since`, object: "key a in ConfigMap NAMESPACE/empty, or spec.volumes[0]"},
		{name: "no-projected-secret", change: mounts(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: named("none")}}}}}),
			step: `volume data: Secret [^ /]+/none does not exist, since`, object: "Secret NAMESPACE/none, or spec.volumes[0]"},
		{name: "no-secret-variable", change: variable(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("none"), Key: "a"}}),
			step: `container c: Secret [^ /]+/none does not exist, since`, object: "Secret NAMESPACE/none"},
		{name: "no-key-variable", change: variable(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: named("empty"), Key: "a"}}),
			step: `container c: there is no key a in Secret [^ /]+/empty, since`, object: "key a in Secret NAMESPACE/empty"},
		{name: "no-resource-claim", change: func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To("none")}}
			container(p).Resources.Claims = []corev1.ResourceClaim{{Name: "device"}}
		}, step: `pod: ResourceClaim [^ /]+/none does not exist, since`, object: "ResourceClaim NAMESPACE/none"},
	}
}
