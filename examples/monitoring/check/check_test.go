package check

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

var promQL = parser.NewParser(parser.Options{})

// used are the labels by the metrics that expressions use.
type used map[string]map[string]bool

// suffix ends the names of a histogram's series.
var suffix = regexp.MustCompile(`_(bucket|sum|count)$`)

// ofTarget are labels that Prometheus adds, and le, which every histogram has.
var ofTarget = []string{labels.MetricName, "job", "instance", "le", "step"}

// add parses an expression and adds the metrics in it, and the labels that it selects or groups by.
func (u used) add(t *testing.T, expression string) {
	t.Helper()
	tree, err := promQL.ParseExpr(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	parser.Inspect(tree, func(node parser.Node, path []parser.Node) error {
		selector, ok := node.(*parser.VectorSelector)
		if !ok || strings.Contains(selector.Name, ":") || selector.Name == "up" { // a recorded series, or Prometheus' own
			return nil
		}
		name := selector.Name
		if u[name] == nil {
			u[name] = map[string]bool{}
		}
		for _, m := range selector.LabelMatchers {
			u[name][m.Name] = true
		}
		for _, above := range path {
			if a, ok := above.(*parser.AggregateExpr); ok {
				for _, label := range a.Grouping {
					u[name][label] = true
				}
			}
		}
		return nil
	})
}

// lines are the lines of metrics.tsv.
func (u used) lines() (lines []string) {
	byMetric := used{}
	for name, labels := range u {
		name = suffix.ReplaceAllString(name, "")
		if strings.HasSuffix(name, "_connection_error") || strings.HasSuffix(name, "_connection_success") { // counters
			name += "_count"
		}
		if byMetric[name] == nil {
			byMetric[name] = map[string]bool{}
		}
		maps.Copy(byMetric[name], labels)
	}
	for name, labels := range byMetric {
		maps.DeleteFunc(labels, func(label string, _ bool) bool { return slices.Contains(ofTarget, label) })
		lines = append(lines, name+"\t"+strings.Join(slices.Sorted(maps.Keys(labels)), ","))
	}
	slices.Sort(lines)
	return lines
}

// TestRules checks the rules as `promtool check rules` does.
func TestRules(t *testing.T) {
	readRules(t, used{})
}

func readRules(t *testing.T, u used) {
	t.Helper()
	groups, errs := rulefmt.ParseFile("../rules.yaml", false, model.UTF8Validation, promQL, slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil {
		t.Fatal("no rules")
	}
	count := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			u.add(t, r.Expr)
			count++
		}
	}
	if count < 15 {
		t.Errorf("only %d rules", count)
	}
}

// variables are Grafana's.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$job", "kubelet", "$instance", ".*")

func readDashboard(t *testing.T, u used) {
	t.Helper()
	text, err := os.ReadFile("../dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			ID      int
			Type    string
			Title   string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	ids, count := map[int]bool{}, 0
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q: its ID %d is another's, or it shows nothing", p.Title, p.ID)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			u.add(t, variables.Replace(target.Expr))
			count++
		}
	}
	if count < 20 {
		t.Errorf("only %d expressions", count)
	}
}

// TestMetrics: metrics.tsv lists what the rules and the dashboard use. Tests of internal/metrics and
// internal/probe compare it with what the agent has.
func TestMetrics(t *testing.T) {
	u := used{}
	readRules(t, u)
	readDashboard(t, u)
	file, err := os.Open("../metrics.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var want []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if line := lines.Text(); !strings.HasPrefix(line, "#") {
			want = append(want, line)
		}
	}
	if got := u.lines(); !slices.Equal(got, want) {
		t.Errorf("metrics.tsv differs; it should have:\n%s", strings.Join(got, "\n"))
	}
}
