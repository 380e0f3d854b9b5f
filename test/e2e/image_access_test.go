package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"swiftlet/test/bed"
	"swiftlet/test/images"
)

// TestImageNeedsPullSecret: a pod without the pull secret cannot use an image that another pod has
// pulled with it.
func TestImageNeedsPullSecret(t *testing.T) {
	t.Parallel()
	in, node := namespace(t), steadyNode(t)
	image := privateImage(t)
	secret := image.secret(t, in, "key")
	sameSecret := image.secret(t, in, "copy")

	holder := podWithImage("holder", node.Name(), image.name, corev1.PullIfNotPresent, secret)
	create(t, in, holder)
	awaitPod(t, in, "holder", timeout, ready)

	create(t, in, podWithImage("beggar", node.Name(), image.name, corev1.PullIfNotPresent))
	awaitPod(t, in, "beggar", timeout, waitsWith("ErrImagePull", "ImagePullBackOff"))
	create(t, in, podWithImage("thief", node.Name(), image.name, corev1.PullNever))
	awaitPod(t, in, "thief", timeout, waitsWith("ErrImageNeverPull"))
	// A secret with the same content is accepted without a pull.
	create(t, in, podWithImage("friend", node.Name(), image.name, corev1.PullNever, sameSecret))
	awaitPod(t, in, "friend", timeout, ready)
}

// registryImage is an image in a registry that requires a password.
type registryImage struct {
	name, host, user, password string
	registry                   *bed.Registry
}

func privateImage(t *testing.T) registryImage { return privateImageFor(t, steady) }

// privateImageFor starts a registry that the node trusts, with an image.
func privateImageFor(t *testing.T, node *bed.Box) registryImage {
	t.Helper()
	return privateImageWith(t, node, "secret")
}

// privateImageWith is privateImageFor with a password.
func privateImageWith(t *testing.T, node *bed.Box, password string) registryImage {
	t.Helper()
	registry, err := cluster.StartRegistry("ann", password)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := node.Trust(registry); err != nil {
		t.Fatal(err)
	}
	i := registryImage{"", registry.Host, registry.User, registry.Password, registry}
	i.name = i.push(t, "team/app:1")
	return i
}

// push adds an image with a unique digest to the registry: the kubelet's records are by image. It may
// have further layers.
func (i registryImage) push(t *testing.T, path string, more ...v1.Layer) (name string) {
	t.Helper()
	image, err := cluster.Image(images.Busybox)
	if err != nil {
		t.Fatal(err)
	}
	if image, err = mutate.AppendLayers(image, more...); err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.Config.Labels = map[string]string{"registry": i.host, "path": path}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	if name, err = i.registry.Push(t.Context(), path, image); err != nil {
		t.Fatal(err)
	}
	return name
}

// secret creates a pull secret for the registry.
func (i registryImage) secret(t *testing.T, in, name string) string {
	t.Helper()
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Type:       corev1.SecretTypeDockerConfigJson,
		Data:       i.login(t),
	}
	if _, err := client().CoreV1().Secrets(in).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return name
}

// login is the content of a pull secret.
func (i registryImage) login(t *testing.T) map[string][]byte {
	t.Helper()
	type entry struct {
		Username string `json:"username"`
		Password string `json:"password"`
	}
	content, err := json.Marshal(map[string]any{"auths": map[string]entry{i.host: {i.user, i.password}}})
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{corev1.DockerConfigJsonKey: content}
}

// podWithImage returns a pod with the image, the pull policy and these pull secrets.
func podWithImage(name, node, image string, policy corev1.PullPolicy, secrets ...string) *corev1.Pod {
	p := sleeper(name, node)
	p.Spec.Containers[0].Image, p.Spec.Containers[0].ImagePullPolicy = image, policy
	for _, s := range secrets {
		p.Spec.ImagePullSecrets = append(p.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s})
	}
	return p
}

// waitsWith checks that the pod's container is waiting with one of these reasons.
func waitsWith(reasons ...string) func(*corev1.Pod) string {
	return func(p *corev1.Pod) string {
		if p == nil || len(p.Status.ContainerStatuses) == 0 {
			return "the pod has no status"
		}
		state := p.Status.ContainerStatuses[0].State
		for _, reason := range reasons {
			if state.Waiting != nil && state.Waiting.Reason == reason {
				return ""
			}
		}
		return fmt.Sprintf("the container is not waiting with %v: %s", reasons, state.String())
	}
}
