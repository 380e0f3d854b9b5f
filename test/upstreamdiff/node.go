package main

import (
	"go/ast"
	"strings"
)

const coreAPI = "k8s.io/api/core/v1"

// nodeFields returns the fields of the Node's spec and status, with "written" if one of the places
// writes it, and the types of conditions and addresses that they name.
func nodeFields(t *tree, writers []place) (items, error) {
	api, err := t.load(coreAPI)
	if err != nil {
		return nil, err
	}
	written, named := writtenNames(writers)
	found := items{}
	for _, root := range []string{"NodeSpec", "NodeStatus"} {
		for _, f := range fieldsOf(api, root) {
			path := strings.ToLower(strings.TrimPrefix(root, "Node")) + "." + f.json
			found[path] = ""
			names := strings.Split(strings.TrimPrefix(root, "Node")+"."+f.name, ".")
			parent, name := names[len(names)-2], names[len(names)-1]
			if written[parent+"."+name] || written[f.of+"."+name] {
				found[path] = "written"
			}
		}
	}
	for name, value := range typedConstants(api, "NodeConditionType", "NodeAddressType") {
		if named[name] {
			found[value] = "written"
		}
	}
	return found, nil
}

// writtenNames returns the fields that are written, after the name of the field or type that has them:
// NodeInfo.BootID of an assignment, NodeSystemInfo.BootID of a literal. It also returns all names of
// other packages that are used.
func writtenNames(writers []place) (written, named map[string]bool) {
	written, named = map[string]bool{}, map[string]bool{}
	for _, w := range writers {
		w.walk(func(at place) bool {
			switch n := at.node.(type) {
			case *ast.AssignStmt:
				for _, target := range n.Lhs {
					if index, ok := target.(*ast.IndexExpr); ok {
						target = index.X
					}
					if selector, ok := target.(*ast.SelectorExpr); ok {
						written[at.aliased(selector.X)+"."+selector.Sel.Name] = true
					}
				}
			case *ast.CompositeLit:
				if n.Type != nil {
					addKeys(written, lastName(n.Type), n)
				}
				if list, ok := n.Type.(*ast.ArrayType); ok {
					for _, element := range n.Elts {
						if one, ok := element.(*ast.CompositeLit); ok {
							addKeys(written, lastName(list.Elt), one)
						}
					}
				}
			case *ast.SelectorExpr:
				named[n.Sel.Name] = true
			}
			return true
		})
	}
	return written, named
}

// aliased returns the name of the field that a variable points to, or else the last name of e.
func (p place) aliased(e ast.Expr) string {
	name := lastName(e)
	if _, ok := e.(*ast.Ident); !ok || len(p.outer) == 0 {
		return name
	}
	p.at(p.outer[0]).walk(func(at place) bool {
		assign, ok := at.node.(*ast.AssignStmt)
		if !ok || len(assign.Lhs) != len(assign.Rhs) {
			return true
		}
		for i, target := range assign.Lhs {
			pointer, ok := assign.Rhs[i].(*ast.UnaryExpr)
			if ok && lastName(target) == name && fieldPath(pointer.X) != "" {
				name = lastName(pointer.X)
				return false
			}
		}
		return true
	})
	return name
}

// addKeys adds the fields that a literal of a struct type sets.
func addKeys(written map[string]bool, kind string, literal *ast.CompositeLit) {
	for _, element := range literal.Elts {
		if kv, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				written[kind+"."+key.Name] = true
			}
		}
	}
}

// typedConstants returns the constants of the types, as "Type value" by name.
func typedConstants(p *goPackage, types ...string) map[string]string {
	found := map[string]string{}
	for at := range all[*ast.ValueSpec](p) {
		spec := at.node.(*ast.ValueSpec)
		for _, kind := range types {
			if spec.Type == nil || lastName(spec.Type) != kind || len(spec.Values) == 0 {
				continue
			}
			for _, value := range at.strings(spec.Values[0]) {
				found[spec.Names[0].Name] = strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(kind, "Node"), "Type")) + " " + value
			}
		}
	}
	return found
}

// node returns the fields of the Node. The functions that write it have "Node" in their names, make the
// kubelet, or are in package nodestatus.
func (u *upstream) node() (items, error) {
	var writers []place
	for _, p := range u.below(kubernetes + "/pkg/kubelet") {
		for name, function := range p.funcs {
			if strings.HasSuffix(p.path, "/nodestatus") || strings.HasSuffix(p.path, "/pkg/kubelet") && (strings.Contains(strings.ToLower(name), "node") || name == "NewMainKubelet") {
				writers = append(writers, function)
			}
		}
	}
	return nodeFields(u.tree, writers)
}
