package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	kubelet "k8s.io/kubelet/config/v1beta1"
)

// TestEveryFeatureIsRead: a gate is read by the kubelet or listed as having no effect.
func TestEveryFeatureIsRead(t *testing.T) {
	read := featuresRead(t, "..", "../../cmd")
	for field := range structFields(reflect.TypeFor[Features]()) {
		if _, ineffective := gatesWithoutEffect[field.Name]; ineffective == read[field.Name] {
			t.Errorf("Features.%s: read %v, listed as without effect %v", field.Name, read[field.Name], ineffective)
		}
	}
	text, err := os.ReadFile("../../docs/node.md")
	if err != nil {
		t.Fatal(err)
	}
	_, docs, _ := strings.Cut(string(text), "\n## Feature gates without effect\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	for name, reason := range gatesWithoutEffect {
		if g, known := knownGates()[name]; !known || g.locked || reason == "" {
			t.Errorf("%s is listed as without effect, but is unknown or locked or has no reason", name)
		}
		if !strings.Contains(docs, "| `"+name+"` | "+reason+" |\n") {
			t.Errorf("docs/node.md does not say that %s has no effect", name)
		}
	}
	if n := strings.Count(docs, "\n| `"); n != len(gatesWithoutEffect) {
		t.Errorf("docs/node.md lists %d gates without effect, there are %d", n, len(gatesWithoutEffect))
	}
}

// TestEveryFieldIsRead: a field of the configuration is read by the kubelet or listed as having no
// effect.
func TestEveryFieldIsRead(t *testing.T) {
	read := map[string]bool{ // by this package
		"TypeMeta": true, "CrashLoopBackOff": true, "FailCgroupV1": true, "FailSwapOn": true, "FeatureGates": true,
		"MergeDefaultEvictionSettings": true, "RunOnce": true, "SeccompDefault": true,
	}
	parseSources(t, func(path string, file *ast.File) {
		if strings.HasPrefix(path, "../config/") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && isKubelet(s.X) {
				read[s.Sel.Name] = true
			}
			return true
		})
	}, "..", "../../cmd")
	for field := range structFields(reflect.TypeFor[kubelet.KubeletConfiguration]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ineffective := fieldsWithoutEffect[name]; ineffective == read[field.Name] {
			t.Errorf("%s: read %v, listed as without effect %v", name, read[field.Name], ineffective)
		}
	}
	text, err := os.ReadFile("../../docs/node.md")
	if err != nil {
		t.Fatal(err)
	}
	_, docs, _ := strings.Cut(string(text), "\n## Fields without effect\n")
	docs, _, _ = strings.Cut(docs, "\n## ")
	for name, reason := range fieldsWithoutEffect {
		if !fieldExists(name) {
			t.Errorf("%s is listed as without effect, but is not a field", name)
		}
		if !strings.Contains(docs, "| `"+name+"` | "+reason+" |\n") {
			t.Errorf("docs/node.md does not say that %s has no effect", name)
		}
	}
	if n := strings.Count(docs, "\n| `"); n != len(fieldsWithoutEffect) {
		t.Errorf("docs/node.md lists %d fields without effect, there are %d", n, len(fieldsWithoutEffect))
	}
}

// isKubelet finds x.Kubelet, and kc, as the configuration is called wherever it has a name.
func isKubelet(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.Sel.Name == "Kubelet"
	case *ast.Ident:
		return e.Name == "kc"
	}
	return false
}

// featuresRead finds the fields of Features that the source code reads.
func featuresRead(t *testing.T, roots ...string) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	parseSources(t, func(_ string, file *ast.File) { recordFeatureReads(file, read) }, roots...)
	return read
}

// parseSources calls visit with each source file below the roots, without tests.
func parseSources(t *testing.T, visit func(path string, file *ast.File), roots ...string) {
	t.Helper()
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err == nil {
				visit(path, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// recordFeatureReads records x.Features.Gate, and f.Gate in a function that has f := x.Features.
func recordFeatureReads(file *ast.File, read map[string]bool) {
	for _, decl := range file.Decls {
		var names []string
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for i, from := range n.Rhs {
					if into, ok := n.Lhs[i].(*ast.Ident); ok && isFeatures(from) {
						names = append(names, into.Name)
					}
				}
			case *ast.SelectorExpr:
				of, named := n.X.(*ast.Ident)
				if isFeatures(n.X) || named && slices.Contains(names, of.Name) {
					read[n.Sel.Name] = true
				}
			}
			return true
		})
	}
}

// isFeatures finds x.Features and &x.Features.
func isFeatures(e ast.Expr) bool {
	if address, ok := e.(*ast.UnaryExpr); ok {
		e = address.X
	}
	selector, ok := e.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Features"
}

func TestGateWithoutEffect(t *testing.T) {
	c := mustLoad(t, "--feature-gates=RuntimeClassInImageCriApi=true,EventedPLEG=false,ReloadKubeletClientCAFile=false,EnvFiles=true")
	want := []string{
		"deprecated flags, better set in the file given by --config: --feature-gates",
		"feature gate ReloadKubeletClientCAFile=false has no effect: the file is always reloaded when it changes",
		"feature gate RuntimeClassInImageCriApi=true has no effect: images are not distinguished by runtime class",
	}
	if !slices.Equal(c.Notices, want) {
		t.Errorf("notices %q, want %q", c.Notices, want)
	}
	if c.Gate("RuntimeClassInImageCriApi") || !c.Gate("ReloadKubeletClientCAFile") || !c.Gate("EnvFiles") {
		t.Error("a gate without effect does not report its default, or another not its value")
	}
}

// TestFieldWithoutEffect: the notice is the same whether the field comes from a file, a drop-in or a
// flag. A file with the default, or with a zero value that stands for it, causes none.
func TestFieldWithoutEffect(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"k.yaml": header + "cpuManagerReconcilePeriod: 5s\nkernelMemcgNotification: true\nshowHiddenMetricsForVersion: \"1.36\"\n" +
			"logging: {flushFrequency: 1s}\nvolumeStatsAggPeriod: 5s\nsyncFrequency: 5s\nhairpinMode: none\n",
		"d/10.conf": header + "hairpinMode: hairpin-veth\n",
		"defaults": header + "cpuManagerReconcilePeriod: 0s\nkernelMemcgNotification: false\nshowHiddenMetricsForVersion: \"\"\n" +
			"hairpinMode: promiscuous-bridge\nlogging: {flushFrequency: 0, options: {json: {infoBufferSize: \"0\"}, text: {infoBufferSize: \"0\"}}}\niptablesDropBit: 15\n",
	})
	file, dropin := dir+"/k.yaml", dir+"/d/10.conf"
	for name, tc := range map[string]struct {
		args []string
		want []string
	}{
		"files": {[]string{"--config=" + file, "--config-dir=" + dir + "/d"}, []string{
			file + ":3: cpuManagerReconcilePeriod has no effect: CPU assignments are applied as soon as they change",
			dropin + ":3: hairpinMode has no effect: the network plugin of the container runtime configures it",
			file + ":4: kernelMemcgNotification has no effect: kernel notifications are always used",
			file + ":6: logging.flushFrequency has no effect: log lines are not buffered",
			file + ":5: showHiddenMetricsForVersion has no effect: no metric is hidden",
		}},
		"flags": {[]string{"--hairpin-mode=none", "--kernel-memcg-notification", "--cpu-manager-reconcile-period=5s", "--log-flush-frequency=1s"}, []string{
			"--cpu-manager-reconcile-period has no effect: CPU assignments are applied as soon as they change",
			"--hairpin-mode has no effect: the network plugin of the container runtime configures it",
			"--kernel-memcg-notification has no effect: kernel notifications are always used",
			"--log-flush-frequency has no effect: log lines are not buffered",
		}},
		"flags with effect": {[]string{"--volume-stats-agg-period=5s", "--sync-frequency=5s"}, []string{
			"deprecated flags, better set in the file given by --config: --sync-frequency --volume-stats-agg-period",
		}},
		"defaults": {[]string{"--config=" + dir + "/defaults"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mustLoad(t, tc.args...).Notices); diff != "" {
				t.Errorf("notices (-want +got):\n%s", diff)
			}
		})
	}
}
