package e2e

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	api "k8s.io/kubelet/pkg/apis/credentialprovider/v1"

	"swiftlet/test/bed"
)

var buildCredentialPlugin = builderOf("credentialplugin")

// pluginNode is a node whose kubelet runs test/credentialplugin under three names: broken, which fails
// for every image, plain, and bearer, which needs service account tokens.
type pluginNode struct {
	t     *testing.T
	node  *bed.Box
	image registryImage
	dir   string // of the plugins, their configuration and recorded requests
	hash  string // of the configuration
}

const audience = "swiftlet.dev/registry"

// providers are two configuration files; HOST is the registry and DIR the helper's directory.
var providers = map[string]string{
	"10.yaml": `
- name: broken
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: [HOST]
  defaultCacheDuration: 1m
  args: [-notes, DIR/broken.jsonl, -logins, DIR/none]
- name: plain
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: [other.example.com, HOST/plain]
  defaultCacheDuration: 1m
  args: [-notes, DIR/plain.jsonl, -logins, DIR/logins]
`,
	"20.yaml": `
- name: bearer
  apiVersion: credentialprovider.kubelet.k8s.io/v1
  matchImages: [HOST/team]
  defaultCacheDuration: 1m
  args: [-notes, DIR/bearer.jsonl, -logins, DIR/logins, -keep, 1h]
  tokenAttributes:
    serviceAccountTokenAudience: ` + audience + `
    requireServiceAccount: true
    requiredServiceAccountAnnotationKeys: [swiftlet.dev/role]
    optionalServiceAccountAnnotationKeys: [swiftlet.dev/absent]
    cacheType: ServiceAccount
`,
}

func newPluginNode(t *testing.T, name string) *pluginNode {
	t.Helper()
	program, err := buildCredentialPlugin()
	if err != nil {
		t.Fatal("build plugin:", err)
	}
	node := bareNode(t, name)
	h := &pluginNode{t: t, node: node, image: privateImageFor(t, node), dir: t.TempDir()}
	for _, plugin := range []string{"broken", "plain", "bearer"} {
		if err := os.Symlink(program, filepath.Join(h.dir, plugin)); err != nil {
			t.Fatal(err)
		}
	}
	hash := sha256.New()
	fill := strings.NewReplacer("HOST", h.image.host, "DIR", h.dir)
	for _, file := range []string{"10.yaml", "20.yaml"} {
		text := []byte("apiVersion: kubelet.config.k8s.io/v1\nkind: CredentialProviderConfig\nproviders:" + fill.Replace(providers[file]))
		write(t, filepath.Join(h.dir, file), text)
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		hash.Write(text)
	}
	h.hash = fmt.Sprintf("sha256:%x", hash.Sum(nil))
	h.setPassword(h.image.password)
	if err := node.StartKubelet(t.Context(), bed.KubeletOptions{Kind: kubelet, Flags: []string{
		"--image-credential-provider-config=" + h.dir, "--image-credential-provider-bin-dir=" + h.dir}}); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h
}

// setPassword sets the password that the plugins return.
func (h *pluginNode) setPassword(password string) {
	h.t.Helper()
	logins, err := json.Marshal(map[string]api.AuthConfig{h.image.host: {Username: h.image.user, Password: password}})
	if err != nil {
		h.t.Fatal(err)
	}
	write(h.t, filepath.Join(h.dir, "logins"), logins)
}

// requests returns the requests that a plugin has received.
func (h *pluginNode) requests(plugin string) (all []api.CredentialProviderRequest) {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, plugin+".jsonl"))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var one api.CredentialProviderRequest
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestCredentialPlugins: a plugin's credentials are for all pods of the node, or for the pods of the
// service account whose token it got. A failing plugin does not prevent pulls.
func TestCredentialPlugins(t *testing.T) {
	t.Parallel()
	in := clearedNamespace(t)
	h := newPluginNode(t, "helped")
	h.plain(in)
	h.bearer(in)
	h.metrics()
}

func (h *pluginNode) plain(in string) {
	t := h.t
	image := h.image.push(t, "plain/app:1")
	create(t, in, podWithImage("plain", h.node.Name(), image, corev1.PullIfNotPresent))
	awaitPod(t, in, "plain", timeout, ready)
	awaitEvent(t, in, "plain", `Successfully pulled image "`+image+`" in `)
	want := []api.CredentialProviderRequest{{
		TypeMeta: metav1.TypeMeta{Kind: "CredentialProviderRequest", APIVersion: "credentialprovider.kubelet.k8s.io/v1"},
		Image:    h.image.host + "/plain/app",
	}}
	if diff := cmp.Diff(want, h.requests("plain")); diff != "" {
		t.Errorf("requests to plain: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(want, h.requests("broken")); diff != "" {
		t.Errorf("requests to broken: -want +got\n%s", diff)
	}
	// The credentials are for every pod of the node, so there is no second request.
	create(t, in, podWithImage("after", h.node.Name(), image, corev1.PullNever))
	awaitPod(t, in, "after", timeout, ready)
	if n := len(h.requests("plain")); n != 1 {
		t.Errorf("plain received %d requests, want 1", n)
	}
}

func (h *pluginNode) bearer(in string) {
	t := h.t
	// Nodes may request tokens only for audiences in pods or allowed by a role.
	h.allowAudience()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "builder", Annotations: map[string]string{"swiftlet.dev/role": "reader", "other": "x"}}}
	if _, err := client().CoreV1().ServiceAccounts(in).Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := podWithImage("builder", h.node.Name(), h.image.name, corev1.PullIfNotPresent)
	p.Spec.ServiceAccountName = "builder"
	made := create(t, in, p)
	awaitPod(t, in, "builder", timeout, ready)
	requests := h.requests("bearer")
	if len(requests) != 1 || requests[0].Image != h.image.host+"/team/app" || cmp.Diff(map[string]string{"swiftlet.dev/role": "reader"}, requests[0].ServiceAccountAnnotations) != "" {
		t.Fatalf("requests to bearer: %+v", requests)
	}
	h.checkToken(requests[0].ServiceAccountToken, in, made)

	// The image is on the node, but only pods of the service account that pulled it may use it.
	create(t, in, podWithImage("stranger", h.node.Name(), h.image.name, corev1.PullIfNotPresent))
	awaitPod(t, in, "stranger", timeout, waitsWith("ErrImagePull", "ImagePullBackOff"))
	again := podWithImage("again", h.node.Name(), h.image.name, corev1.PullNever)
	again.Spec.ServiceAccountName = "builder"
	create(t, in, again)
	awaitPod(t, in, "again", timeout, ready)
	if n := len(h.requests("bearer")); n != 1 { // credentials are cached for the service account
		t.Errorf("bearer received %d requests, want 1", n)
	}
}

func (h *pluginNode) allowAudience() {
	t := h.t
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "audience-"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"request-serviceaccounts-token-audience"}, APIGroups: []string{""}, Resources: []string{audience}}},
	}
	role, err := client().RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "system:nodes"}},
	}
	if _, err := client().RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// checkToken reviews the token with the API server.
func (h *pluginNode) checkToken(token, in string, of *corev1.Pod) {
	h.t.Helper()
	review, err := client().AuthenticationV1().TokenReviews().Create(h.t.Context(),
		&authv1.TokenReview{Spec: authv1.TokenReviewSpec{Token: token, Audiences: []string{audience}}}, metav1.CreateOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	user := review.Status.User
	if !review.Status.Authenticated || user.Username != "system:serviceaccount:"+in+":builder" {
		h.t.Errorf("token review: %+v", review.Status)
	}
	for key, want := range map[string]string{
		"authentication.kubernetes.io/pod-name": of.Name, "authentication.kubernetes.io/pod-uid": string(of.UID),
	} {
		if got := user.Extra[key]; len(got) != 1 || got[0] != want {
			h.t.Errorf("the token's %s is %v, want %s", key, got, want)
		}
	}
}

func (h *pluginNode) metrics() {
	shown := scrape(h.t, h.node)
	for series, want := range map[string]float64{
		`kubelet_credential_provider_config_info{hash="` + h.hash + `"}`:       1,
		`kubelet_credential_provider_plugin_duration{plugin_name="plain"}`:     1,
		`kubelet_credential_provider_plugin_duration{plugin_name="bearer"}`:    1,
		`kubelet_credential_provider_plugin_errors_total{plugin_name="plain"}`: 0,
	} {
		if got := valueOf(shown, series); got != want {
			h.t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	failed := valueOf(shown, `kubelet_credential_provider_plugin_errors_total{plugin_name="broken"}`)
	if runs := len(h.requests("broken")); int(failed) < 3 || int(failed) > runs {
		h.t.Errorf("broken failed %v times in %d requests", failed, runs)
	}
}
