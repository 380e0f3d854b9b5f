package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authn "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"swiftlet/test/bed"
)

// accessTable is the server's table of access rights; its header explains the columns.
const accessTable = "../../internal/server/testdata/access.tsv"

type accessRow struct {
	method, path string
	rights       []string
	code         int
	unserved     bool
	upgrade      bool
}

func readAccessTable(t *testing.T) []accessRow {
	t.Helper()
	text, err := os.ReadFile(accessTable)
	if err != nil {
		t.Fatal(err)
	}
	var rows []accessRow
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimSpace(line), "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		code, err := strconv.Atoi(cells[2])
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(cells, "ours") && kubelet == bed.Reference {
			continue
		}
		method, path, _ := strings.Cut(cells[0], " ")
		rows = append(rows, accessRow{method, path, strings.Fields(cells[1]), code, slices.Contains(cells, "unserved"), slices.Contains(cells, "upgrade")})
	}
	return rows
}

// rightsOfNodes are the subresources of nodes that grant access, and one that grants none.
var rightsOfNodes = []string{"stats", "metrics", "log", "healthz", "pods", "configz", "checkpoint", "statusz", "proxy", "status"}

// everythingOn enables every endpoint of a node.
const everythingOn = `{readOnlyPort: 10255, enableSystemLogQuery: true, featureGates: {KubeletAllocatedPodsEndpoint: true}}`

// TestAccess requests every path of a node with every kind of credentials, and then some through the
// read-only port.
func TestAccess(t *testing.T) {
	t.Parallel()
	node := bareNode(t, "access")
	options := bed.KubeletOptions{Kind: kubelet, Config: everythingOn}
	if kubelet == bed.Ours {
		options.Flags = []string{"--enable-ui"}
	}
	if err := node.StartKubelet(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	if err := node.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	space, rows := namespace(t), readAccessTable(t)
	var all sync.WaitGroup
	checkAccess := func(name string, client *http.Client, want func(accessRow) int) {
		all.Go(func() {
			defer client.CloseIdleConnections()
			for _, row := range rows {
				wanted := want(row)
				if row.unserved && kubelet == bed.Reference {
					wanted = row.code // the reference checks the path before the client
				}
				var header http.Header
				if row.upgrade {
					header = webSocketHeader
				}
				if code, body := requestWith(t, client, row.method, "https://"+node.Address()+":10250"+row.path, header); code != wanted {
					t.Errorf("%s %s with %s: %d, want %d: %.200s", row.method, row.path, name, code, wanted, body)
				}
			}
		})
	}
	always := func(code int) func(accessRow) int { return func(accessRow) int { return code } }
	checkAccess("no credentials", clientWith(t, node, func(*rest.Config) {}), always(http.StatusUnauthorized))
	checkAccess("certificate of an unknown CA", unknownCAClient(t), always(http.StatusUnauthorized))
	checkAccess("invalid token", clientWith(t, node, func(c *rest.Config) { c.BearerToken = "wrong" }), always(http.StatusUnauthorized))
	checkAccess("administrator", clientWith(t, node, func(c *rest.Config) {
		c.TLSClientConfig = nodeConfig(node).TLSClientConfig
		c.Insecure, c.CAData = true, nil
	}),
		func(row accessRow) int { return row.code })
	none := account(t, space, "none", "")
	checkAccess("token without rights", clientWith(t, node, func(c *rest.Config) { c.BearerToken = none }), always(http.StatusForbidden))
	for _, right := range rightsOfNodes {
		token := account(t, space, right, "nodes/"+right)
		checkAccess("token with nodes/"+right, clientWith(t, node, func(c *rest.Config) { c.BearerToken = token }), func(row accessRow) int {
			if slices.Contains(row.rights, right) {
				return row.code
			}
			return http.StatusForbidden
		})
	}
	all.Wait()
	readOnlyPort(t, node)
	healthChecks(t, node)
	nodeLogQueries(t, node)
	checkStatuszAndFlagz(t, node)
	pageThroughAPIServer(t, node)
}

// readOnlyPort requests one path of each kind without credentials.
func readOnlyPort(t *testing.T, node *bed.Box) {
	t.Helper()
	for path, want := range map[string]int{
		"/healthz": 200, "/healthz/syncloop": 200, "/pods": 200, "/metrics": 200, "/metrics/slis": 200,
		"/runningpods/": 405, "/containerLogs/none/none/none": 405, "/exec/none/none/none": 405, "/attach/": 405, "/run/": 405, "/portForward/": 405,
		"/logs/": 405, "/logs/?query=none": 405, "/debug/pprof/cmdline": 405,
		"/configz": 404, "/statusz": 404, "/flagz": 404, "/ui/": 404, "/allocatedPods": 404, "/debug/flags/v": 404, "/checkpoint/none/none/none": 404, "/none": 404,
	} {
		if code, body := request(t, http.DefaultClient, http.MethodGet, "http://"+node.Address()+":10255"+path); code != want {
			t.Errorf("read-only port, %s: %d, want %d: %.200s", path, code, want, body)
		}
	}
}

// healthChecks checks that the SLIs count requested health checks, and that they can be reset.
func healthChecks(t *testing.T, node *bed.Box) {
	t.Helper()
	slis := func(method string) string {
		t.Helper()
		code, body := requestNode(t, node, method, "/metrics/slis")
		if code != http.StatusOK {
			t.Fatalf("/metrics/slis: %d %s", code, body)
		}
		return body
	}
	if body := slis(http.MethodDelete); body != "metrics reset\n" {
		t.Errorf("reset of SLIs: %q", body)
	}
	if left := slis(http.MethodGet); strings.Contains(left, `name="syncloop"`) {
		t.Errorf("SLIs after a reset: %s", left)
	}
	for range 2 {
		requestNode(t, node, http.MethodGet, "/healthz")
	}
	shown := slis(http.MethodGet)
	// The reference did not show this one after a reset.
	if kubelet == bed.Ours && !strings.Contains(shown, "\nprocess_start_time_seconds ") {
		t.Errorf("SLIs lack process_start_time_seconds:\n%s", shown)
	}
	for _, series := range []string{
		`kubernetes_healthcheck{name="syncloop",type="healthz"} 1`,
		`kubernetes_healthchecks_total{name="syncloop",status="success",type="healthz"} 2`,
		`kubernetes_healthchecks_total{name="log",status="success",type="healthz"} 2`,
	} {
		if !strings.Contains(shown, series) {
			t.Errorf("SLIs lack %s:\n%s", series, shown)
		}
	}
}

// nodeLogQueries queries logs of services that do not exist, and checks the errors of bad queries.
func nodeLogQueries(t *testing.T, node *bed.Box) {
	t.Helper()
	for query, want := range map[string]string{
		"query=":                                  `400 query: Invalid value: [""]: may not be empty`,
		"query=no-such-service":                   "200 log not found for no-such-service",
		"query=no-such&query=other-such":          "200 log not found for no-such\n\nlog not found for other-such",
		"query=no-such&tailLines=5":               "200 options present and query resolved to log files for [no-such]\ntry without specifying options",
		"query=../etc/passwd":                     `406 query: Invalid value: ["../etc/passwd"]: [a-z]+at ../etc/passwd: path escapes from parent`,
		"query=a&query=/b":                        `406 query: Invalid value: "[/b], [a]": cannot specify a file and service`,
		"query=/a&query=/b":                       `406 query: Invalid value: ["/a","/b"]: cannot specify more than one file`,
		"query=/a&tailLines=1":                    `406 query: Invalid value: ["/a"]: cannot specify file with options`,
		"query=a&tailLines=x":                     `400 tailLines: Invalid value: "x": strconv.Atoi: parsing "x": invalid syntax`,
		"query=a&tailLines=100001":                "406 tailLines: Invalid value: 100001: must be between 0 and 100000, inclusive",
		"query=a&boot=1":                          "406 boot: Invalid value: 1: must be less than 1",
		"query=a&sinceTime=x":                     `400 sinceTime: Invalid value: "x": invalid time format`,
		"query=a&pattern=(":                       "406 pattern: Invalid value: \"(\": error parsing regexp: missing closing ): `(`",
		"query=a%3Bls":                            `406 query: Invalid value: "a;ls": input contains unsupported characters`,
		"tailLines=5":                             "406 query: Required value: cannot be empty with options",
		"query=a&query=b&query=c&query=d&query=e": "406 query: Too many: 5: must have at most 4 items",
		"query=a&sinceTime=2026-01-02T00:00:00Z&untilTime=2026-01-01T00:00:00Z": "406 untilTime: Invalid value: \"2026-01-01T00:00:00Z\": must be after `sinceTime`",
	} {
		code, body := requestNode(t, node, http.MethodGet, "/logs/?"+query)
		got := fmt.Sprint(code, " ", strings.TrimSpace(body))
		got = strings.Replace(got, ": openat ../", ": [a-z]+at ../", 1) // the kubelets use different system calls
		if got = strings.Replace(got, ": statat ../", ": [a-z]+at ../", 1); got != want {
			t.Errorf("/logs/?%s: %s, want %s", query, got, want)
		}
	}
}

// checkStatuszAndFlagz reads /statusz and /flagz.
func checkStatuszAndFlagz(t *testing.T, node *bed.Box) {
	t.Helper()
	for path, parts := range map[string][]string{
		"/statusz": {"\nkubelet statusz\nWarning: This endpoint is not meant to be machine parseable", "\nBinary version", "\nEmulation version", "/healthz"},
		"/flagz":   {"\nkubelet flagz\nWarning: This endpoint is not meant to be machine parseable", "\nhostname-override", node.Name()},
	} {
		code, body := requestNode(t, node, http.MethodGet, path)
		for _, part := range parts {
			if code != http.StatusOK || !strings.Contains(body, part) {
				t.Errorf("%s: %d %s\nlacks %q", path, code, body, part)
			}
		}
	}
}

// webSocketHeader asks for a WebSocket.
var webSocketHeader = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}}

func request(t *testing.T, client *http.Client, method, url string) (int, string) {
	t.Helper()
	return requestWith(t, client, method, url, nil)
}

func requestWith(t *testing.T, client *http.Client, method, url string, header http.Header) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	maps.Copy(r.Header, header)
	response, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Errorf("%s %s: %v", method, url, err)
	}
	return response.StatusCode, string(body)
}

// clientWith is a client of the node with the credentials that edit sets.
func clientWith(t *testing.T, node *bed.Box, edit func(*rest.Config)) *http.Client {
	t.Helper()
	config := &rest.Config{Host: node.Address(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	edit(config)
	config.NextProtos = []string{"http/1.1"} // HTTP/2 has no upgrades
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// unknownCAClient has an administrator's certificate that an unknown CA has signed.
func unknownCAClient(t *testing.T) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		InsecureSkipVerify: true, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
	}}}
}

// account creates a service account with all verbs on one resource, and returns its token.
func account(t *testing.T, space, name, resource string) string {
	t.Helper()
	core, roles := client().CoreV1().ServiceAccounts(space), client().RbacV1()
	if _, err := core.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if resource != "" {
		meta := metav1.ObjectMeta{Name: space + "-" + name}
		if _, err := roles.ClusterRoles().Create(t.Context(), &rbac.ClusterRole{ObjectMeta: meta,
			Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"*"}}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := roles.ClusterRoleBindings().Create(t.Context(), &rbac.ClusterRoleBinding{ObjectMeta: meta,
			RoleRef:  rbac.RoleRef{APIGroup: rbac.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbac.Subject{{Kind: rbac.ServiceAccountKind, Namespace: space, Name: name}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = roles.ClusterRoleBindings().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
			_ = roles.ClusterRoles().Delete(context.Background(), meta.Name, metav1.DeleteOptions{})
		})
	}
	token, err := core.CreateToken(t.Context(), name, &authn.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}
