package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"swiftlet/test/bed"
	"swiftlet/test/trust/tally"
)

// TestCanary gives a node secrets with known text: of pods, for image pulls, for a CSI driver, tokens, keys.
// The agent logs everything and is traced. Nothing that it writes, logs, traces or serves contains one,
// except the files that should, and others cannot read these.
func TestCanary(t *testing.T) {
	t.Parallel()
	c := newCanary(t)
	c.use(t)
	found := map[string]bool{} // canary in place
	c.search("log", readOrFail(t, c.node.Log("kubelet")), found)
	c.searchServed(t, found)
	c.searchArchive(t, found)
	c.searchReported(t, found)
	for _, span := range c.spans.snapshot() {
		c.search("trace "+span.Name, []byte(span.String()), found)
	}
	c.searchFiles(t, found)
	for name := range c.texts {
		leaked := false
		for where := range found {
			if strings.HasPrefix(where, name+" in ") {
				leaked = true
			}
		}
		c.counted.Fault(!leaked)
	}
	c.counted.Leaks(len(found))
	if kubelet == bed.Reference {
		t.Skipf("with the reference: %d places have secrets: %.4000s", len(found), fmt.Sprint(found))
	}
	for where := range found {
		t.Error("leaked:", where)
	}
}

// canary is a node with secrets.
type canary struct {
	node    *bed.Box
	space   string
	spans   *spans
	texts   map[string][][]byte // forms of each secret, by name
	raw     map[string]string
	token   string // of a client of the node's API
	counted *tally.Tally
}

func newCanary(t *testing.T) *canary {
	t.Helper()
	c := &canary{node: bareNode(t, "canary"), space: clearedNamespace(t), texts: map[string][][]byte{}, raw: map[string]string{}, counted: tally.New(t, "canary")}
	for _, name := range []string{"env", "envFrom", "volume", "pull password", "stage secret", "publish secret"} {
		c.add(name, "canary"+rand.Text())
	}
	var address string
	c.spans, address = startCollector(t, c.node)
	startKubelet(t, c.node, fmt.Sprintf(`{contentType: application/json, logging: {verbosity: 10}, enableSystemLogQuery: true,
		tracing: {endpoint: %q, samplingRatePerMillion: 1000000}, featureGates: {KubeletAllocatedPodsEndpoint: true}}`, address))
	c.token = account(t, c.space, "reader", "nodes/metrics")
	c.add("token of a client", c.token)
	node, err := clientcmd.BuildConfigFromFlags("", c.node.Path("/etc/kubernetes/kubelet.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	c.addKey(t, "key of the kubeconfig", node.KeyData)
	c.addKey(t, "serving key", readOrFail(t, c.node.Path("/etc/kubernetes/pki/node.key")))
	return c
}

// add adds a secret in the forms in which it could be written.
func (c *canary) add(name, secret string) {
	c.raw[name] = secret
	c.texts[name] = append(c.texts[name], []byte(secret), []byte(base64.StdEncoding.EncodeToString([]byte(secret))),
		[]byte(hex.EncodeToString([]byte(secret))))
}

// addKey adds a private key: a line of its PEM form, and that in base64 as a kubeconfig has it.
func (c *canary) addKey(t *testing.T, name string, text []byte) {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("%s is not PEM", name)
	}
	lines := strings.Split(string(text), "\n")
	c.texts[name] = [][]byte{[]byte(lines[1]), []byte(hex.EncodeToString(block.Bytes[:16])), []byte(base64.StdEncoding.EncodeToString(text)[:64])}
}

// search adds the secrets that the text contains.
func (c *canary) search(where string, text []byte, found map[string]bool) {
	for name, forms := range c.texts {
		for _, form := range forms {
			if bytes.Contains(text, form) {
				found[name+" in "+where] = true
			}
		}
	}
}

// use starts pods that use the secrets, and a client that uses its token.
func (c *canary) use(t *testing.T) {
	t.Helper()
	c.secret(t, "env", "env")
	c.secret(t, "from", "envFrom")
	c.secret(t, "volume", "volume")
	c.secret(t, "stage", "stage secret")
	c.secret(t, "publish", "publish secret")
	image := privateImageWith(t, c.node, c.raw["pull password"])
	c.texts["pull password"] = append(c.texts["pull password"], []byte(base64.StdEncoding.EncodeToString([]byte("ann:"+c.raw["pull password"]))))
	d := startDriver(t, c.node, "canary.csi.test")
	createCSIDriver(t, d.name, storagev1.CSIDriverSpec{AttachRequired: ptr.To(false), TokenRequests: []storagev1.TokenRequest{{Audience: "vault"}}})
	awaitDriver(t, d)
	claim(t, c.space, "disk", corev1.CSIPersistentVolumeSource{Driver: d.name, VolumeHandle: d.makeVolume("disk", 32<<20), FSType: "ext4",
		NodeStageSecretRef:   &corev1.SecretReference{Namespace: c.space, Name: "stage"},
		NodePublishSecretRef: &corev1.SecretReference{Namespace: c.space, Name: "publish"},
	}, corev1.PersistentVolumeFilesystem)

	p := podWithImage("p", c.node.Name(), image.name, corev1.PullAlways, image.secret(t, c.space, "pull"))
	p.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: fromClaim("disk")},
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume", DefaultMode: ptr.To[int32](0o400)}}}}
	main := &p.Spec.Containers[0]
	main.VolumeMounts = []corev1.VolumeMount{{Name: "disk", MountPath: "/disk"}, {Name: "secret", MountPath: "/secret", SubPath: "key"}}
	main.Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "env"}, Key: "key"}}}}
	main.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "from"}}}}
	// The command has the variable expanded by the kubelet, and a hook and a probe fail with it in their output.
	main.Command = []string{"sh", "-c", exitOnTerm, "$(A)"}
	started := startPod(t, c.space, p)
	c.addTokens(t, started)
	scraper := clientWith(t, c.node, func(r *rest.Config) { r.BearerToken = c.token })
	if err := getOK(t.Context(), scraper, "https://"+c.node.Address()+":10250/metrics/resource"); err != nil {
		t.Error(err)
	}
	scraper.CloseIdleConnections()
}

func (c *canary) secret(t *testing.T, name, of string) {
	t.Helper()
	_, err := client().CoreV1().Secrets(c.space).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": c.raw[of]}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// addTokens adds the token of the pod's service account.
func (c *canary) addTokens(t *testing.T, p *corev1.Pod) {
	t.Helper()
	tokens, err := filepath.Glob(c.node.Inside("/var/lib/kubelet/pods/" + string(p.UID) + "/volumes/kubernetes.io~projected/*/token"))
	if err != nil || len(tokens) == 0 {
		t.Fatalf("the pod has no token: %v", err)
	}
	c.add("token of the pod", string(readOrFail(t, tokens[0])))
}

// searchServed searches what the node serves to an administrator. Profiles are left out: they have stacks
// and counts, not data.
func (c *canary) searchServed(t *testing.T, found map[string]bool) {
	t.Helper()
	for _, row := range readAccessTable(t) {
		if row.method != http.MethodGet || row.code != http.StatusOK {
			continue
		}
		_, body := requestNode(t, c.node, row.method, row.path)
		c.search("GET "+row.path, []byte(body), found)
	}
}

// searchArchive searches what "swiftlet report" writes.
func (c *canary) searchArchive(t *testing.T, found map[string]bool) {
	t.Helper()
	if kubelet == bed.Reference {
		return
	}
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	if err := cluster.Report(t.Context(), c.node.Name(), file); err != nil {
		t.Fatal(err)
	}
	packed := bytes.NewReader(readOrFail(t, file))
	zip, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]bool{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(header.Name, "/")
		files[name] = true
		c.search("report "+name, text, found)
	}
	for _, name := range []string{"node.json", "pods.json", "why/" + c.space + "/p.json", "configz.json", "metrics/cadvisor.txt", "host/mounts.txt"} {
		if !files[name] {
			t.Errorf("the report has no %s", name)
		}
	}
}

// searchReported searches what the agent writes to the API server.
func (c *canary) searchReported(t *testing.T, found map[string]bool) {
	t.Helper()
	events, err := client().CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		c.search("event "+e.Reason, []byte(e.Message), found)
	}
	node, err := client().CoreV1().Nodes().Get(t.Context(), c.node.Name(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := client().CoreV1().Pods(c.space).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string]any{"Node": node, "pods": pods} {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		c.search(name, text, found)
	}
}

func readOrFail(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
