//! Expressions in, types and messages out.

use super::*;

fn environment() -> Environment {
    let user = ObjectType::new("kubernetes.UserInfo")
        .with_field("username", Type::String)
        .with_field("groups", Type::list(Type::String))
        .with_field("extra", Type::map(Type::String, Type::list(Type::String)));
    let request = ObjectType::new("kubernetes.AdmissionRequest")
        .with_field("name", Type::String)
        .with_field("userInfo", Type::object("kubernetes.UserInfo"));
    Environment::new("1.36".parse().expect("a release"))
        .with_object(user)
        .with_object(request)
        .with_variable("object", Type::Dyn)
        .with_variable("request", Type::object("kubernetes.AdmissionRequest"))
        .with_variable("authorizer", Type::object("kubernetes.authorization.Authorizer"))
        .with_variable("authorizer.requestResource", Type::object("kubernetes.authorization.ResourceCheck"))
}

/// Every issue as `line:column: message`, without the lines that are quoted.
fn issues(environment: &Environment, text: &str) -> Vec<String> {
    let issues = match environment.compile(text) {
        Ok(program) => return vec![format!("no issue, but {}", program.output_type())],
        Err(issues) => issues.to_string(),
    };
    issues.lines().filter_map(|line| line.strip_prefix("ERROR: <input>:")).map(str::to_string).collect()
}

#[test]
fn expressions_have_types() {
    let environment = environment();
    for (text, want) in [
        ("type(ip('1.1.1.1')) == net.IP", "bool"),
        ("net.IP", "type(net.IP)"),
        ("net.CIDR", "type(net.CIDR)"),
        ("optional_type", "type(optional_type)"),
        ("list", "type(list(dyn))"),
        ("map", "type(map(dyn, dyn))"),
        ("type", "type(type)"),
        ("null_type", "type(null_type)"),
        ("[].sum()", "int"),
        ("optional.none()", "optional_type(dyn)"),
        ("object.?a.b", "optional_type(dyn)"),
        ("object[?0]", "dyn"),
        ("1 < 1.0", "bool"),
        ("object.spec.replicas > 5", "bool"),
        ("object.metadata.name.startsWith('a') && has(object.spec)", "bool"),
        ("object.spec.containers.all(c, c.image.contains('@'))", "bool"),
        ("object.spec.containers.exists_one(c, c == 1)", "bool"),
        ("[1,2,3].map(x, x * 2).filter(y, y > 1)", "list(int)"),
        ("[1,2].map(i, i > 1, i + 1)", "list(int)"),
        ("request.userInfo.groups.exists(g, g == 'a')", "bool"),
        ("request.userInfo.extra['a'][0] == 'x'", "bool"),
        ("authorizer.group('').resource('pods').check('get').allowed()", "bool"),
        ("authorizer.requestResource.check('get').allowed()", "bool"),
        ("'a' in ['b']", "bool"),
        ("size('a') + size([1]) + 'a'.size()", "int"),
        ("{'a': 1}.map(k, k)", "list(string)"),
        ("{'a': 1}.transformMap(k, v, v + 1)", "map(string, int)"),
        ("{'a': 1}.transformMapEntry(k, v, {v: k})", "map(int, string)"),
        ("[1].transformList(i, v, i + v)", "list(int)"),
        ("[1].all(i, v, i == v)", "bool"),
        ("[3,1].sortBy(x, -x)", "list(int)"),
        ("[3,1].sort().reverse().distinct()", "list(int)"),
        ("[[1],[2]].flatten()", "list(int)"),
        ("lists.range(3)", "list(int)"),
        ("quantity('1Gi').isGreaterThan(quantity('1Mi'))", "bool"),
        ("ip('1.1.1.1').family() == 4", "bool"),
        ("cidr('10.0.0.0/8').containsIP('10.0.0.1')", "bool"),
        ("semver('1.2.3').major()", "int"),
        ("format.dns1123Label().validate('a').hasValue()", "bool"),
        ("format.named('x').value()", "kubernetes.NamedFormat"),
        ("url('https://a').getHost()", "string"),
        ("'abc'.find('b')", "string"),
        ("'abc'.findAll('b', 2)", "list(string)"),
        ("sets.contains([1], [1,2])", "bool"),
        ("optional.of(1).optMap(x, x + 1).value()", "int"),
        ("object.?a.?b.orValue('c')", "dyn"),
        ("[?optional.of(1), 2]", "list(int)"),
        ("{?'a': optional.of(1)}", "map(string, int)"),
        ("type(1) == int", "bool"),
        ("type([]) == list", "bool"),
        ("timestamp('2024-01-01T00:00:00Z') - duration('1h')", "google.protobuf.Timestamp"),
        ("timestamp('2024-01-01T00:00:00Z').getFullYear('UTC')", "int"),
        ("[{}, {'a': 1}]", "list(map(string, int))"),
        ("object == null", "bool"),
        ("{1: 2}.foo", "int"),
        ("has(request.name)", "bool"),
        ("(((1)))", "int"),
        ("[,]", "list(dyn)"),
        ("{,}", "map(dyn, dyn)"),
        ("- -1", "int"),
        ("--1", "int"),
        ("1 -- 1", "int"),
        (".1", "double"),
        ("object.as", "dyn"),
        ("-9223372036854775808", "int"),
        ("'%s %d %f %e %x %o %b %%'.format([1,1,1.0,1.0,1,1,1])", "string"),
        ("'%.2f'.format([1.0])", "string"),
        ("'%s'.format([object])", "string"),
        ("'%s'.format([[1, 'a']])", "string"),
    ] {
        match environment.compile(text) {
            Ok(program) => assert_eq!(program.output_type().to_string(), want, "{text}"),
            Err(issues) => panic!("{text}: {issues}"),
        }
    }
}

#[test]
fn what_is_wrong_is_said() {
    let environment = environment();
    // What an expression begins with, as messages list it.
    let any = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, \
               IDENTIFIER}";
    let cases: &[(&str, &[&str])] = &[
        ("quantity('1').foo", &["1:14: unexpected failed resolution of 'kubernetes.Quantity'"]),
        ("ip('1').foo", &["1:8: type 'net.IP' does not support field selection"]),
        ("authorizer.foo", &["1:11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'"]),
        ("cidr('1').foo == 1", &["1:10: type 'net.CIDR' does not support field selection"]),
        ("url('x').y", &["1:9: unexpected failed resolution of 'kubernetes.URL'"]),
        ("[1,2].map(x, x.y)", &["1:15: type 'int' does not support field selection"]),
        ("[1, 'a']", &["1:5: expected type 'int' but found 'string'"]),
        ("{'a': 1, 'b': 'c'}", &["1:15: expected type 'int' but found 'string'"]),
        ("[1, dyn(2)]", &["1:8: expected type 'int' but found 'dyn'"]),
        ("object.", &["1:8: Syntax error: no viable alternative at input '.'"]),
        ("1 +", &["1:4: Syntax error: mismatched input '<EOF>' expecting ANY"]),
        ("(1", &["1:3: Syntax error: missing ')' at '<EOF>'"]),
        ("a b", &["1:3: Syntax error: extraneous input 'b' expecting <EOF>"]),
        (
            "'abc",
            &[
                "1:1: Syntax error: token recognition error at: ''abc'",
                "1:5: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        (
            "a @ b",
            &[
                "1:3: Syntax error: token recognition error at: '@'",
                "1:5: Syntax error: extraneous input 'b' expecting <EOF>",
            ],
        ),
        (
            "1 = 2",
            &[
                "1:3: Syntax error: token recognition error at: '= '",
                "1:5: Syntax error: extraneous input '2' expecting <EOF>",
            ],
        ),
        ("a.true", &["1:3: Syntax error: mismatched input 'true' expecting IDENTIFIER"]),
        (
            "-",
            &[
                "1:2: Syntax error: no viable alternative at input '-'",
                "1:2: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        ("[1 2]", &["1:4: Syntax error: extraneous input '2' expecting {']', ','}"]),
        ("foo(1", &["1:6: Syntax error: missing ')' at '<EOF>'"]),
        ("request.foo", &["1:8: undefined field 'foo'"]),
        ("has(object)", &["1:5: invalid argument to has() macro"]),
        ("object.all(1, true)", &["1:12: argument must be a simple name"]),
        ("dyn", &["1:1: undeclared reference to 'dyn' (in container '')"]),
        (
            "optional.of(1).orValue('a')",
            &["1:23: found no matching overload for 'orValue' applied to 'optional_type(int).(string)'"],
        ),
        (
            "'%d'.format(['a'])",
            &["1:14: error during formatting: decimal clause can only be used on integers, was given string"],
        ),
        ("'%s %s'.format([1])", &["1:15: index 1 out of range"]),
        ("duration('1x')", &["1:10: invalid duration argument"]),
        ("duration(1)", &["1:10: invalid duration argument"]),
        ("timestamp('x')", &["1:11: invalid timestamp argument"]),
        ("timestamp(253402300800)", &["1:11: invalid timestamp argument"]),
        ("'a'.matches('(')", &["1:13: invalid matches argument"]),
        ("for", &["1:1: reserved identifier: for"]),
        ("99999999999999999999", &["1:1: invalid int literal"]),
        ("authorizer.path('/x').check('get').foo()", &["1:39: undeclared reference to 'foo' (in container '')"]),
        ("1 + 'a'", &["1:3: found no matching overload for '_+_' applied to '(int, string)'"]),
        ("1 + 1u", &["1:3: found no matching overload for '_+_' applied to '(int, uint)'"]),
        ("1 == 'a'", &["1:3: found no matching overload for '_==_' applied to '(int, string)'"]),
        ("1 in {'a': 1}", &["1:3: found no matching overload for '@in' applied to '(int, map(string, int))'"]),
        ("!1", &["1:1: found no matching overload for '!_' applied to '(int)'"]),
        ("-'a'", &["1:1: found no matching overload for '-_' applied to '(string)'"]),
        ("1 && true", &["1:1: expected type 'bool' but found 'int'"]),
        (
            "true || 'a' || 3",
            &["1:9: expected type 'bool' but found 'string'", "1:16: expected type 'bool' but found 'int'"],
        ),
        ("true ? 1 : 'a'", &["1:6: found no matching overload for '_?_:_' applied to '(bool, int, string)'"]),
        ("1 ? 2 : 3", &["1:3: found no matching overload for '_?_:_' applied to '(int, int, int)'"]),
        ("foo.bar.baz", &["1:1: undeclared reference to 'foo' (in container '')"]),
        ("foo(1, 2)", &["1:4: undeclared reference to 'foo' (in container '')"]),
        ("object.foo(1)", &["1:11: undeclared reference to 'foo' (in container '')"]),
        ("'a'.foo()", &["1:8: undeclared reference to 'foo' (in container '')"]),
        ("[1].all(i, i, true)", &["1:12: duplicate variable name: i"]),
        (
            "sets.contains([1], ['a'])",
            &["1:14: found no matching overload for 'sets.contains' applied to '(list(int), list(string))'"],
        ),
        ("[?1]", &["1:3: expected type 'optional_type(int)' but found 'int'"]),
        ("duration('1h') + 1", &["1:16: found no matching overload for '_+_' applied to '(duration, int)'"]),
        ("[[], 1]", &["1:6: expected type 'list(dyn)' but found 'int'"]),
        ("[[], [1], ['a']]", &["1:11: expected type 'list(int)' but found 'list(string)'"]),
        ("null == 1", &["1:6: found no matching overload for '_==_' applied to '(null, int)'"]),
        ("[null, 1]", &["1:8: expected type 'null' but found 'int'"]),
        ("'x' + object.y + 1", &["1:16: found no matching overload for '_+_' applied to '(string, int)'"]),
        ("request.name.foo", &["1:13: type 'string' does not support field selection"]),
        ("has(request.foo)", &["1:4: undefined field 'foo'"]),
        (
            "1.map(x, x)",
            &["1:1: expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)"],
        ),
        (
            "'abc'.all(x, true)",
            &["1:1: expression of type 'string' cannot be range of a comprehension (must be list, map, or dynamic)"],
        ),
        (
            "cel.bind(x, 1, x)",
            &[
                "1:1: undeclared reference to 'cel' (in container '')",
                "1:9: undeclared reference to 'bind' (in container '')",
                "1:10: undeclared reference to 'x' (in container '')",
                "1:16: undeclared reference to 'x' (in container '')",
            ],
        ),
        ("Object{}", &["1:7: undeclared reference to 'Object' (in container '')"]),
        ("int{a: 1}", &["1:4: 'int' is not a message type", "1:6: undefined field 'a'"]),
        ("object{a: 1}", &["1:7: 'dyn' is not a type", "1:9: unexpected failed resolution of 'object'"]),
        ("a.b.c{d: 1}", &["1:6: undeclared reference to 'a.b.c' (in container '')"]),
        ("1 +* 2", &["1:4: Syntax error: extraneous input '*' expecting ANY"]),
        ("[1,,2]", &["1:4: Syntax error: mismatched input ',' expecting ']'"]),
        ("{1}", &["1:3: Syntax error: mismatched input '}' expecting ':'"]),
        ("{1:2 3:4}", &["1:6: Syntax error: mismatched input '3' expecting {'}', ','}"]),
        (
            "f(,)",
            &[
                "1:3: Syntax error: extraneous input ',' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
            ],
        ),
        ("f(1,)", &["1:5: Syntax error: mismatched input ')' expecting ANY"]),
        ("a..b", &["1:3: Syntax error: no viable alternative at input '..'"]),
        ("a.b.", &["1:5: Syntax error: no viable alternative at input '.'"]),
        ("a[1", &["1:4: Syntax error: missing ']' at '<EOF>'"]),
        (
            "a[]",
            &[
                "1:3: Syntax error: mismatched input ']' expecting {'[', '{', '(', '.', '-', '!', '?', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
            ],
        ),
        ("!", &["1:2: Syntax error: extraneous input '<EOF>' expecting ANY"]),
        ("!!", &["1:3: Syntax error: extraneous input '<EOF>' expecting ANY"]),
        (
            "1 ?: 2",
            &[
                "1:4: Syntax error: extraneous input ':' expecting ANY",
                "1:7: Syntax error: mismatched input '<EOF>' expecting ':'",
            ],
        ),
        ("1 ? 2", &["1:6: Syntax error: mismatched input '<EOF>' expecting ':'"]),
        ("a &&", &["1:5: Syntax error: mismatched input '<EOF>' expecting ANY"]),
        ("|| a", &["1:1: Syntax error: extraneous input '||' expecting ANY"]),
        (
            "a | b",
            &[
                "1:3: Syntax error: token recognition error at: '| '",
                "1:5: Syntax error: extraneous input 'b' expecting <EOF>",
            ],
        ),
        (
            r#""abc"#,
            &[
                r#"1:1: Syntax error: token recognition error at: '"abc'"#,
                "1:5: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        ("'a' 'b'", &["1:5: Syntax error: extraneous input ''b'' expecting <EOF>"]),
        (")", &["1:1: Syntax error: mismatched input ')' expecting ANY"]),
        ("(", &["1:2: Syntax error: mismatched input '<EOF>' expecting ANY"]),
        ("()", &["1:2: Syntax error: mismatched input ')' expecting ANY"]),
        ("a)", &["1:2: Syntax error: extraneous input ')' expecting <EOF>"]),
        ("]", &["1:1: Syntax error: mismatched input ']' expecting ANY"]),
        ("}", &["1:1: Syntax error: mismatched input '}' expecting ANY"]),
        ("{a: }", &["1:5: Syntax error: mismatched input '}' expecting ANY"]),
        (
            "x.y(",
            &[
                "1:5: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', ')', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}",
            ],
        ),
        ("x.y(1", &["1:6: Syntax error: missing ')' at '<EOF>'"]),
        (".a", &["1:2: undeclared reference to '.a' (in container '')"]),
        ("..", &["1:2: Syntax error: no viable alternative at input '..'"]),
        (".", &["1:2: Syntax error: no viable alternative at input '.'"]),
        (".a.b", &["1:2: undeclared reference to '.a' (in container '')"]),
        (".f(1)", &["1:3: undeclared reference to '.f' (in container '')"]),
        (
            "in",
            &[
                "1:1: Syntax error: mismatched input 'in' expecting ANY",
                "1:3: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        ("a in", &["1:5: Syntax error: mismatched input '<EOF>' expecting ANY"]),
        ("true.false", &["1:6: Syntax error: mismatched input 'false' expecting IDENTIFIER"]),
        ("null.x", &["1:5: type 'null' does not support field selection"]),
        (
            "a.in",
            &[
                "1:3: Syntax error: no viable alternative at input '.in'",
                "1:5: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        ("as", &["1:1: reserved identifier: as"]),
        ("import(1)", &["1:1: reserved identifier: import"]),
        ("1.5e400", &["1:1: invalid double literal"]),
        ("18446744073709551616u", &["1:1: invalid uint literal"]),
        ("9223372036854775808", &["1:1: invalid int literal"]),
        ("0x", &["1:2: Syntax error: extraneous input 'x' expecting <EOF>"]),
        ("1e", &["1:2: Syntax error: extraneous input 'e' expecting <EOF>"]),
        (
            "a ? b : c ? d : e",
            &[
                "1:1: undeclared reference to 'a' (in container '')",
                "1:5: undeclared reference to 'b' (in container '')",
                "1:9: undeclared reference to 'c' (in container '')",
                "1:13: undeclared reference to 'd' (in container '')",
                "1:17: undeclared reference to 'e' (in container '')",
            ],
        ),
        ("a.`b`", &["1:3: unsupported syntax: '`'"]),
        ("`a`", &["1:1: Syntax error: mismatched input '`a`' expecting ANY"]),
        (
            "object.?",
            &[
                "1:9: Syntax error: mismatched input '<EOF>' expecting {IDENTIFIER, ESC_IDENTIFIER}",
                "1:9: unsupported ident kind",
            ],
        ),
        ("object[?]", &["1:9: Syntax error: mismatched input ']' expecting ANY"]),
        ("[?]", &["1:3: Syntax error: mismatched input ']' expecting ANY"]),
        ("{?}", &["1:3: Syntax error: mismatched input '}' expecting ANY"]),
        ("a{", &["1:3: Syntax error: mismatched input '<EOF>' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"]),
        ("a{b", &["1:4: Syntax error: mismatched input '<EOF>' expecting ':'"]),
        ("a{b:", &["1:5: Syntax error: mismatched input '<EOF>' expecting ANY"]),
        ("a{b: 1,", &["1:8: Syntax error: missing '}' at '<EOF>'"]),
        ("a{?b: 1}", &["1:2: undeclared reference to 'a' (in container '')"]),
        ("a{1: 2}", &["1:3: Syntax error: mismatched input '1' expecting {'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"]),
        (
            "@",
            &[
                "1:1: Syntax error: token recognition error at: '@'",
                "1:2: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        (
            "#",
            &[
                "1:1: Syntax error: token recognition error at: '#'",
                "1:2: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        (
            "$",
            &[
                "1:1: Syntax error: token recognition error at: '$'",
                "1:2: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        (
            "é",
            &[
                "1:1: Syntax error: token recognition error at: 'é'",
                "1:2: Syntax error: mismatched input '<EOF>' expecting ANY",
            ],
        ),
        ("'é' + 1", &["1:5: found no matching overload for '_+_' applied to '(string, int)'"]),
        ("a // c", &["1:1: undeclared reference to 'a' (in container '')"]),
        ("'%z'.format([1])", &[r#"1:12: could not parse formatting clause: unrecognized formatting clause "z""#]),
        ("'%'.format([1])", &["1:11: unexpected end of string"]),
        (
            "'%.f'.format([1.0])",
            &[
                r#"1:13: could not parse formatting clause: error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax"#,
            ],
        ),
        ("'%s'.format([1, 2])", &["1:12: too many arguments supplied to string.format (expected 1, got 2)"]),
        (
            "'%s'.format([quantity('1')])",
            &[
                "1:22: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given kubernetes.Quantity",
            ],
        ),
        (
            "'%f'.format([1])",
            &["1:14: error during formatting: fixed-point clause can only be used on doubles, was given int"],
        ),
        ("matches('(', 'a')", &["1:9: invalid matches argument"]),
        ("'a'.matches('[')", &["1:13: invalid matches argument"]),
        ("[1, 1.0]", &["1:5: expected type 'int' but found 'double'"]),
    ];
    for (text, want) in cases {
        let want: Vec<String> = want.iter().map(|message| message.replace("ANY", any)).collect();
        assert_eq!(issues(&environment, text), want, "{text}");
    }
}

#[test]
fn libraries_depend_on_the_release() {
    for (text, minor, want) in [
        ("quantity('1') == quantity('2')", 27, false),
        ("quantity('1') == quantity('2')", 28, true),
        ("{'a': 1}.?a.hasValue()", 27, false),
        ("{'a': 1}.?a.hasValue()", 28, true),
        ("[?optional.of(1)] == [1]", 28, true),
        ("1 < 1.5", 27, false),
        ("1 < 1.5", 28, true),
        ("duration('x') == duration('1s')", 28, true),
        ("duration('x') == duration('1s')", 29, false),
        ("[1].all(i, v, i < v)", 31, false),
        ("[1].all(i, v, i < v)", 32, true),
        ("[2, 1].sortBy(x, x) == [1, 2]", 33, false),
        ("[2, 1].sortBy(x, x) == [1, 2]", 34, true),
    ] {
        let environment = Environment::new(revisor_version::Release { major: 1, minor });
        assert_eq!(environment.compile(text).is_ok(), want, "{text} in 1.{minor}");
    }
}

#[test]
fn bindings_and_patches_are_there_on_request() {
    let plain = environment();
    let extended = environment().with_library(Library::Bindings).with_library(Library::JsonPatch).with_patch_types();
    for (text, want) in [
        ("cel.bind(x, 1, x + 1)", "int"),
        ("'/a/' + jsonpatch.escapeKey('b/c')", "string"),
        ("Object{spec: Object.spec{replicas: 1}}", "Object"),
        ("[JSONPatch{op: 'add', path: '/a', value: object}]", "list(JSONPatch)"),
    ] {
        assert!(plain.compile(text).is_err(), "{text}");
        let program = extended.compile(text).expect(text);
        assert_eq!(program.output_type().to_string(), want, "{text}");
    }
    assert_eq!(
        issues(&extended, "JSONPatch{op: 1, x: 2}"),
        ["1:13: expected type of field 'op' is 'string' but provided type is 'int'", "1:19: undefined field 'x'"]
    );
}

#[test]
fn a_program_knows_types_references_and_places() {
    let program = environment().compile("object.x +\n  request.name").expect("it makes sense");
    let root = program.root();
    assert_eq!(program.location(root.id), Location { line: 1, column: 9 });
    assert_eq!(program.reference(root.id), Some(&Reference::Overloads(vec!["add_string"])));
    let ExprKind::Call(call) = &root.kind else { panic!("{root:?}") };
    assert_eq!(program.type_of(call.args[1].id), Some(&Type::String));
    assert_eq!(program.location(call.args[1].id), Location { line: 2, column: 9 });
}

#[test]
fn depth_and_size_are_bounded() {
    let environment = environment();
    let nested = |open: &str, close: &str, times: usize| format!("{}1{}", open.repeat(times), close.repeat(times));
    for (name, text, want) in [
        ("parentheses", nested("(", ")", 249), "no issue, but int"),
        ("parentheses", nested("(", ")", 250), "-1:0: expression recursion limit exceeded: 250"),
        ("lists", nested("[", "]", 20_000), "-1:0: expression recursion limit exceeded: 250"),
        ("sums", format!("1{}", "+1".repeat(250)), "no issue, but int"),
        ("sums", format!("1{}", "+1".repeat(251)), "-1:0: max recursion depth exceeded"),
        ("many sums", format!("1{}", "+1".repeat(49_000)), "-1:0: max recursion depth exceeded"),
        ("alternatives", format!("true{}", "||true".repeat(10_000)), "no issue, but bool"),
        ("length", "1".repeat(100_001), "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"),
        ("copies", format!("object.?a{}", ".optMap(x, x)".repeat(200)), "-1:0: expression is too large"),
        ("not", format!("{}true", "!".repeat(90_000)), "no issue, but bool"),
    ] {
        assert_eq!(issues(&environment, &text), [want], "{name}");
    }
    // A type that doubles with every step.
    let text = format!("{}1{}", "[".repeat(60), "].map(x, {x: x})".repeat(60));
    assert!(issues(&environment, &text)[0].ends_with("the type of this expression is too large"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "[a-c0-3.,?:(){}\\[\\]!'\"+*<=&| -]{0,40}") {
        let _ = environment().compile(&text);
    }

    #[test]
    fn no_sequence_of_words_makes_it_panic(words in proptest::collection::vec(proptest::sample::select(vec![
        "object", "request", ".", ".?", "[", "[?", "]", "(", ")", "{", "}", ",", ":", "?", "1", "'a'", "-", "!", "in",
        "has(", ".map(x, ", ".all(i, v, ", ".optMap(x, ", "&&", "||", "==", "null", "type(", "[]", "{}",
    ]), 0..20)) {
        let _ = environment().compile(&words.concat());
    }
}
