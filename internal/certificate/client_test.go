package certificate

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// nodeFiles are the certificate files of a node, and the signer of its certificates.
type nodeFiles struct {
	t      *testing.T
	signer *signer
	ClientConfig
}

func newNodeFiles(t *testing.T) *nodeFiles {
	dir := t.TempDir()
	return &nodeFiles{t, newSigner(t), ClientConfig{
		NodeName:   "n",
		Kubeconfig: filepath.Join(dir, "kubelet.conf"),
		Bootstrap:  filepath.Join(dir, "bootstrap.conf"),
		Dir:        filepath.Join(dir, "pki"),
		Renew:      true,
	}}
}

func (f *nodeFiles) writeUser(path string, user *clientcmdapi.AuthInfo) {
	f.t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://api.example:6443", TLSServerName: "api", ProxyURL: "http://proxy.example"}
	config.AuthInfos["u"] = user
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		f.t.Fatal(err)
	}
}

// embedPair writes a kubeconfig with an embedded certificate, which it returns.
func (f *nodeFiles) embedPair(name string, lifetime time.Duration) []byte {
	cert, key := f.signer.newPair(name, lifetime)
	f.writeUser(f.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
	return cert
}

func (f *nodeFiles) writeBootstrap() {
	f.writeUser(f.Bootstrap, &clientcmdapi.AuthInfo{Token: "t"})
}

func (f *nodeFiles) newClient() (*Rotator, *rest.Config, error) {
	return NewClient(f.ClientConfig, (&runningRotator{}).deps(f.signer))
}

func (f *nodeFiles) mustNewClient() (*Rotator, *rest.Config) {
	f.t.Helper()
	r, base, err := f.newClient()
	if err != nil {
		f.t.Fatal(err)
	}
	if base.CertFile != "" || len(base.CertData) > 0 || base.BearerToken != "" || base.Host != "https://api.example:6443" {
		f.t.Errorf("connection settings %+v", base)
	}
	return r, base
}

func TestBootstrapWritesKubeconfig(t *testing.T) {
	for name, prepare := range map[string]func(f *nodeFiles){
		"kubeconfig_is_missing":              func(*nodeFiles) {},
		"kubeconfig_certificate_has_expired": func(f *nodeFiles) { f.embedPair("n", -time.Minute) },
		"kubeconfig_has_no_certificate":      func(f *nodeFiles) { f.writeUser(f.Kubeconfig, &clientcmdapi.AuthInfo{Token: "t"}) },
		"kubeconfig_is_invalid":              func(f *nodeFiles) { f.writeInvalid(f.Kubeconfig) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newNodeFiles(t)
			f.writeBootstrap()
			prepare(f)
			r, _ := f.mustNewClient()
			if r.Current() != nil {
				t.Error("got a certificate before any was issued")
			}
			if due, known := r.nextDue(); !known || !due.IsZero() {
				t.Errorf("next request is due at %v, %t, want at once", due, known)
			}
			written, err := clientcmd.LoadFromFile(f.Kubeconfig)
			if err != nil {
				t.Fatal(err)
			}
			pair := filepath.Join(f.Dir, "kubelet-client-current.pem")
			if user := written.AuthInfos["default-auth"]; user.ClientCertificate != pair || user.ClientKey != pair || user.Token != "" {
				t.Errorf("user %+v", user)
			}
			if c := written.Clusters["default-cluster"]; c.Server != "https://api.example:6443" || c.TLSServerName != "api" || c.ProxyURL != "http://proxy.example" {
				t.Errorf("cluster %+v", c)
			}
			if info, err := os.Stat(f.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("kubeconfig: %v %v", info.Mode(), err)
			}
			if config, err := f.bootstrapConfig(time.Now()); err != nil || config.BearerToken != "t" {
				t.Errorf("request does not use the bootstrap token: %v", err)
			}
		})
	}
}

func (f *nodeFiles) writeInvalid(path string) {
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func TestValidKubeconfigNeedsNoBootstrap(t *testing.T) {
	f := newNodeFiles(t) // without a bootstrap file: kubeadm removes it when the node has joined
	f.embedPair("n", time.Hour)
	r, _ := f.mustNewClient()
	if r.validCurrent() == nil {
		t.Error("certificate of the kubeconfig is not used")
	}
	if due, _ := r.nextDue(); due.After(time.Now()) {
		t.Errorf("embedded certificate is due for renewal at %v, want at once", due)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, "kubelet-client-current.pem")); err != nil {
		t.Error(err)
	}

	f = newNodeFiles(t)
	f.Renew = false
	f.embedPair("n", time.Hour)
	r, _ = f.mustNewClient()
	if due, _ := r.nextDue(); r.validCurrent() == nil || !due.Equal(r.Current().Leaf.NotAfter) {
		t.Errorf("without renewal: certificate is %s, next request is due at %v", r.describeCurrent(), due)
	}
	if _, err := os.Stat(f.Dir); err == nil {
		t.Error("without renewal: certificate was written to the store")
	}
}

func TestStoredCertificateIsPreferredToKubeconfig(t *testing.T) {
	f := newNodeFiles(t)
	f.embedPair("n", time.Hour)
	first, _ := f.mustNewClient()
	f.embedPair("n", time.Hour)
	second, _ := f.mustNewClient()
	if !second.Current().Leaf.Equal(first.Current().Leaf) {
		t.Error("the certificate in the store is not used")
	}
}

func TestExpiredKubeconfigWithoutBootstrapIsReadAgain(t *testing.T) {
	f := newNodeFiles(t)
	f.embedPair("n", -time.Minute)
	r, _ := f.mustNewClient()
	if r.validCurrent() != nil {
		t.Fatal("expired certificate is reported as valid")
	}
	if _, err := f.bootstrapConfig(time.Now()); err == nil || !strings.Contains(err.Error(), `certificate of "system:node:n" expired at`) || !strings.Contains(err.Error(), "bootstrap.conf") {
		t.Errorf("error %v, want the expired certificate and the missing bootstrap file", err)
	}
	fresh := f.embedPair("n", time.Hour)
	if config, err := f.bootstrapConfig(time.Now()); err != nil || string(config.CertData) != string(fresh) {
		t.Errorf("replaced kubeconfig is not used: %v", err)
	}
}

func TestNewClientErrors(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(f *nodeFiles)
		want    []string
	}{
		"both_files_missing":                   {func(*nodeFiles) {}, []string{"kubelet.conf", "bootstrap.conf"}},
		"bootstrap_is_invalid":                 {func(f *nodeFiles) { f.writeInvalid(f.Bootstrap) }, []string{"kubelet.conf", "bootstrap kubeconfig cannot be used", "bootstrap.conf"}},
		"no_bootstrap_and_kubeconfig_missing":  {func(f *nodeFiles) { f.Bootstrap = "" }, []string{"read kubeconfig", "kubelet.conf"}},
		"bootstrap_is_a_directory":             {func(f *nodeFiles) { f.Bootstrap = f.t.TempDir() }, []string{"is a directory"}},
		"key_does_not_match_certificate":       {func(f *nodeFiles) { f.Bootstrap = ""; f.embedMismatchedPair() }, []string{"kubelet.conf", "private key does not match public key"}},
		"kubeconfig_directory_is_not_writable": {func(f *nodeFiles) { f.writeBootstrap(); f.Kubeconfig = "/proc/none/kubelet.conf" }, []string{"write kubeconfig", "/proc/none"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newNodeFiles(t)
			c.prepare(f)
			_, _, err := f.newClient()
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
}

func (f *nodeFiles) embedMismatchedPair() {
	cert, _ := f.signer.newPair("n", time.Hour)
	_, key := f.signer.newPair("n", time.Hour)
	f.writeUser(f.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificateData: cert, ClientKeyData: key})
}

func TestClientFilesReloadKubeconfig(t *testing.T) {
	f := newNodeFiles(t)
	log := slog.New(slog.DiscardHandler)
	f.writeUser(f.Kubeconfig, &clientcmdapi.AuthInfo{Token: "t"})
	if files, base, err := NewClientFiles(f.Kubeconfig, log); files != nil || err != nil || base.BearerToken != "t" {
		t.Errorf("kubeconfig without a certificate: %v %v", files, err)
	}
	f.embedMismatchedPair()
	if _, _, err := NewClientFiles(f.Kubeconfig, log); err == nil || !strings.Contains(err.Error(), "private key does not match") {
		t.Errorf("kubeconfig with a mismatched key: %v", err)
	}

	f.embedPair("first", time.Hour)
	files, _, err := NewClientFiles(f.Kubeconfig, log)
	if err != nil {
		t.Fatal(err)
	}
	<-files.Ready()
	expectCurrent := func(want string) {
		t.Helper()
		if got := files.Current().Leaf.Subject.CommonName; got != "system:node:"+want {
			t.Errorf("current certificate is %s, want %s", got, want)
		}
	}
	expectCurrent("first")
	f.embedPair("second", time.Hour)
	expectCurrent("second")
	f.writeInvalid(f.Kubeconfig)
	expectCurrent("second")

	cert, key := f.signer.newPair("third", time.Hour)
	pair := filepath.Join(t.TempDir(), "pair.pem")
	if err := os.WriteFile(pair, append(cert, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	f.writeUser(f.Kubeconfig, &clientcmdapi.AuthInfo{ClientCertificate: pair, ClientKey: pair})
	expectCurrent("third")
	if files, _, err = NewClientFiles(f.Kubeconfig, log); err != nil {
		t.Fatal(err)
	}
	cert, key = f.signer.newPair("fourth", time.Hour)
	if err := os.WriteFile(pair, append(cert, key...), 0o600); err != nil {
		t.Fatal(err)
	}
	expectCurrent("fourth")
}
