package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"swiftlet/test/bed"
	"swiftlet/test/scale/hollow"
)

const (
	namespace     = "scale"
	configMapName = "shared"
	configMapKey  = "key"
)

// cluster is etcd, an API server, and the relay that nodes reach it by.
type cluster struct {
	bed    *bed.Bed
	api    *bed.ControlPlane
	client kubernetes.Interface
	relay  *relay
	audit  *auditLog
	dir    string // of the nodes' files

	pods  *podWatch
	nodes *nodeWatch
	stop  func() // of the watches
	// ownWatches are the watches that are open without nodes.
	ownWatches int
}

// startCluster returns when the API server has what pods need.
func startCluster(ctx context.Context, progress io.Writer) (_ *cluster, err error) {
	c := &cluster{stop: func() {}}
	// One file: the size at which the log is rotated is in MB.
	if c.bed, err = bed.StartAPI(ctx, progress, "--audit-log-maxsize=100000"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.close())
		}
	}()
	c.api = c.bed.ControlPlane
	if err := c.api.AuditNodes(ctx); err != nil {
		return nil, err
	}
	config := rest.CopyConfig(c.api.Config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	if c.relay, err = newRelay(strings.TrimPrefix(c.api.Server, "https://")); err != nil {
		return nil, err
	}
	c.audit = newAuditLog(c.api.AuditLog())
	// Sockets are among the files, and their paths are limited to 107 characters.
	if c.dir, err = os.MkdirTemp("", "scale"); err != nil {
		return nil, fmt.Errorf("make directory of nodes: %w", err)
	}
	if err := c.createObjects(ctx); err != nil {
		return nil, err
	}
	return c, c.watch(ctx)
}

// createObjects creates what pods need and what controllers would have created.
func (c *cluster) createObjects(ctx context.Context) error {
	core := c.client.CoreV1()
	if _, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	if _, err := core.ServiceAccounts(namespace).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create service account: %w", err)
	}
	for name, data := range map[string]map[string]string{
		"kube-root-ca.crt": {"ca.crt": string(c.api.Config.CAData)},
		configMapName:      {configMapKey: "0"},
	} {
		_, err := core.ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create ConfigMap: %w", err)
		}
	}
	return nil
}

// watch starts the watches of this process and counts them with those of the API server itself.
func (c *cluster) watch(ctx context.Context) error {
	watches, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.pods, c.nodes = newPodWatch(), newNodeWatch()
	wait := runWatches(watches, c.client, c.pods, c.nodes)
	c.stop = func() { stop(); wait() }
	if err := await(ctx, time.Minute, "watches of the test", func() bool { return c.pods.listed() && c.nodes.listed() }); err != nil {
		return err
	}
	var err error
	c.ownWatches, err = c.openWatches(ctx)
	return err
}

// close stops everything and removes all files.
func (c *cluster) close() error {
	c.stop()
	if c.relay != nil {
		c.relay.close()
	}
	err := c.bed.Close()
	if c.dir != "" {
		err = errors.Join(err, os.RemoveAll(c.dir))
	}
	return err
}

// nodeName returns the name of node i. It is an address, so that no kubelet looks it up.
func nodeName(i int) string { return fmt.Sprintf("10.210.%d.%d", i/250, i%250+1) }

// loopback is an address of this machine that only node i serves on.
func loopback(i int) string { return fmt.Sprintf("127.210.%d.%d", i/250, i%250+1) }

// files are those of node i.
func (c *cluster) files(i int) hollow.Files { return hollow.Files(filepath.Join(c.dir, nodeName(i))) }

// writeNodes makes the identities and files of nodes.
func (c *cluster) writeNodes(nodes int) error {
	certificate, key, err := cert.GenerateSelfSignedCertKey("node", nil, nil)
	if err != nil {
		return fmt.Errorf("make serving certificate: %w", err)
	}
	serving := hollow.Serving{Certificate: filepath.Join(c.dir, "serving.crt"), Key: filepath.Join(c.dir, "serving.key")}
	if err := errors.Join(os.WriteFile(serving.Certificate, certificate, 0o600), os.WriteFile(serving.Key, key, 0o600)); err != nil {
		return fmt.Errorf("write serving certificate: %w", err)
	}
	for i := range nodes {
		kubeconfig, err := c.api.NodeKubeconfig(nodeName(i), 24*time.Hour)
		if err != nil {
			return err
		}
		kubeconfig = bytes.ReplaceAll(kubeconfig, []byte(c.api.Server), []byte("https://"+c.relay.address()))
		if err := c.files(i).Write(kubeconfig, loopback(i), serving); err != nil {
			return err
		}
	}
	return nil
}

// openWatches asks the API server how many watches are open.
func (c *cluster) openWatches(ctx context.Context) (int, error) {
	text, err := c.client.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read metrics of the API server: %w", err)
	}
	return countWatches(string(text))
}
