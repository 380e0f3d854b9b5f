package architecture

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"

	"golang.org/x/tools/go/packages"
)

// unboundedFunctions read all there is, however much.
var unboundedFunctions = []string{
	"os.ReadFile", "io/fs.ReadFile", "(*os.Root).ReadFile",
	"io/ioutil.ReadFile", "io/ioutil.ReadAll",
	"(*bufio.Reader).ReadString", "(*bufio.Reader).ReadBytes", "(*bytes.Buffer).ReadFrom",
	"(*os/exec.Cmd).Output", "(*os/exec.Cmd).CombinedOutput",
}

// readerFunctions read all of the reader that is their last argument.
var readerFunctions = []string{
	"io.ReadAll", "bufio.NewScanner", "encoding/json.NewDecoder",
	"go.yaml.in/yaml/v2.NewDecoder", "go.yaml.in/yaml/v3.NewDecoder", "gopkg.in/yaml.v3.NewDecoder", "sigs.k8s.io/yaml.NewDecoder",
	"k8s.io/apimachinery/pkg/util/yaml.NewYAMLReader", "k8s.io/apimachinery/pkg/util/yaml.NewYAMLToJSONDecoder",
	"k8s.io/apimachinery/pkg/util/yaml.NewDocumentDecoder",
}

var (
	// limitingFunctions return readers that end.
	limitingFunctions = []string{"io.LimitReader", "net/http.MaxBytesReader", "io.NewSectionReader"}
	// boundedReaders are types of readers that end.
	boundedReaders = []string{"*bytes.Reader", "*strings.Reader", "*bytes.Buffer", "*io.LimitedReader", "*io.SectionReader"}
	// growing are types of writers that keep all they get.
	growing = []string{"*bytes.Buffer", "*strings.Builder"}
)

// read is a use of a function that may read without a bound.
type read struct {
	at   token.Pos
	what string
}

// readScan finds reads in one file.
type readScan struct {
	info  *types.Info
	calls map[*ast.Ident]*ast.CallExpr // by the name of the function
	found []read
}

// unboundedReads returns the reads of a file that have no bound.
func unboundedReads(p *packages.Package, file *ast.File) []read {
	s := &readScan{info: p.TypesInfo, calls: map[*ast.Ident]*ast.CallExpr{}}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if id := nameOf(n.Fun); id != nil {
				s.calls[id] = n
			}
		case *ast.Ident:
			s.use(n)
		case *ast.AssignStmt:
			s.assign(n)
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				s.output(key, n.Value)
			}
		}
		return true
	})
	return s.found
}

func nameOf(fun ast.Expr) *ast.Ident {
	switch fun := ast.Unparen(fun).(type) {
	case *ast.Ident:
		return fun
	case *ast.SelectorExpr:
		return fun.Sel
	}
	return nil
}

// use checks a name, which may be that of a function.
func (s *readScan) use(id *ast.Ident) {
	function, ok := s.info.Uses[id].(*types.Func)
	if !ok {
		return
	}
	name, call := function.FullName(), s.calls[id]
	switch {
	case slices.Contains(unboundedFunctions, name):
	case slices.Contains(readerFunctions, name):
		if call != nil && s.ends(call.Args[len(call.Args)-1]) {
			return
		}
	case name == "io.Copy" || name == "io.CopyBuffer":
		if call != nil && (!s.hasType(call.Args[0], growing) || s.ends(call.Args[1])) {
			return
		}
	default:
		return
	}
	s.found = append(s.found, read{id.Pos(), name})
}

// ends reports whether an expression is a reader with a bound.
func (s *readScan) ends(e ast.Expr) bool {
	if s.hasType(e, boundedReaders) {
		return true
	}
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	id := nameOf(call.Fun)
	if id == nil {
		return false
	}
	function, ok := s.info.Uses[id].(*types.Func)
	if !ok {
		return false
	}
	if function.FullName() == "bufio.NewReader" || function.FullName() == "bufio.NewReaderSize" {
		return s.ends(call.Args[0])
	}
	return slices.Contains(limitingFunctions, function.FullName())
}

func (s *readScan) hasType(e ast.Expr, names []string) bool {
	t := s.info.Types[e].Type
	return t != nil && slices.Contains(names, t.String())
}

func (s *readScan) assign(n *ast.AssignStmt) {
	if len(n.Lhs) != len(n.Rhs) {
		return
	}
	for i, left := range n.Lhs {
		if field, ok := left.(*ast.SelectorExpr); ok {
			s.output(field.Sel, n.Rhs[i])
		}
	}
}

// output checks what the output of a program is written to.
func (s *readScan) output(field *ast.Ident, value ast.Expr) {
	v, ok := s.info.Uses[field].(*types.Var)
	if ok && v.IsField() && v.Pkg() != nil && v.Pkg().Path() == "os/exec" && s.hasType(value, growing) {
		s.found = append(s.found, read{field.Pos(), "os/exec.Cmd." + v.Name()})
	}
}
