"""Terraform's words for its errors, with the places of names as in `str.format`.

Each is a summary and a detail, after a key where a summary has several details or is made of names.
"""

import re

_TABLE = r"""
Nesting too deep :: Expressions and blocks may not be nested more than {} levels deep.
Invalid character encoding :: All input files must be UTF-8 encoded. Ensure that UTF-8 encoding is selected in your
  editor.
Root value must be object :: The root value in a JSON-based configuration must be either a JSON object or a JSON array
  of objects.
Incorrect JSON value type :: Either a JSON object or a JSON array is required, representing the contents of one or more
  "{}" blocks.
Extraneous JSON object property :: No argument or block type is named "{}".

Missing required argument :: The argument "{}" is required, but no definition was found.
Unsupported argument :: An argument named "{}" is not expected here.{}
Unsupported block type :: Blocks of type "{}" are not expected here.{}
missing label = Missing {} for {} :: All {1} blocks must have {2} labels ({3}).
extraneous label = Extraneous label for {} :: {1} expected for {0} blocks.
invalid name = Invalid {} name :: A name must start with a letter or underscore and may contain only letters, digits,
  underscores, and dashes.
reserved variable = Invalid variable name :: The variable name "{}" is reserved due to its special meaning inside module
  blocks.
type of version = Invalid version constraint :: Version must be specified as a string.
type of source = Invalid source :: Source must be specified as a string.
Invalid provider source string :: The "source" attribute must be in the format "[hostname/][namespace/]name"
Invalid reference from destroy provisioner :: Destroy-time provisioners and their connection configurations may only
  reference attributes of the related resource, via 'self', 'count.index', or 'each.key'.\n\nReferences to other
  resources during the destroy phase can cause dependency cycles and interact poorly with create_before_destroy.
Invalid required_providers block :: A "required_providers" block must be nested inside a "terraform" block.
Variables not allowed :: Variables may not be used here.
Function calls not allowed :: Functions may not be called here.
Unsuitable value type :: Unsuitable value: {}
version type = Invalid version constraint :: A string value is required for {}.
version syntax = Invalid version constraint :: This string does not use correct version constraint syntax.
quoted string = Invalid quoted type constraints :: Terraform 0.11 and earlier required type constraints to be given in
  quotes, but that form is now deprecated and will be removed in a future version of Terraform. Remove the quotes around
  "string".
quoted collection = Invalid quoted type constraints :: Terraform 0.11 and earlier required type constraints to be given
  in quotes, but that form is now deprecated and will be removed in a future version of Terraform. Remove the quotes
  around "{0}" and write {0}(string) instead to explicitly indicate that the {0} elements are strings.
Invalid legacy variable type hint :: To provide a full type expression, remove the surrounding quotes and give the type
  expression directly.
null default = Invalid default value for variable :: A null default value is not valid when nullable=false.
default type = Invalid default value for variable :: This default value is not compatible with the variable's type
  constraint: {}.
Invalid default value for optional attribute :: This default value is not compatible with the attribute's type
  constraint: {}.
block in locals = Unexpected "{}" block :: Blocks are not allowed here.
Reserved block type name in module block :: The block type name "{}" is reserved for use by Terraform in a future
  version.
Invalid combination of "count" and "for_each" :: The "count" and "for_each" meta-arguments are mutually-exclusive, only
  one should be used to be explicit about the number of resources to be created.
no list = Invalid expression :: A static list expression is required.
no reference = Invalid expression :: A single static variable reference is required: only attribute access and indexing
  with constant keys. No calculations, function calls, template expressions, etc are allowed here.
no iterator = Invalid expression :: A single static variable reference is required.
Invalid provider configuration reference :: The provider argument requires a provider type name, optionally followed by
  a period and then a configuration alias.
no keyword = Invalid "{}" keyword :: The "{0}" argument requires one of the following keywords: {1}.
Duplicate lifecycle block :: This resource already has a lifecycle block at {}.
Zero assert blocks :: Check blocks must have at least one assert block.
Invalid data resource lifecycle argument :: The lifecycle argument "{}" is defined only for managed resources
  ("resource" blocks), and is not valid for data resources.
constant condition = Invalid {} expression :: The condition expression must refer to at least one object from elsewhere
  in the configuration, or else its result would not be checking anything.
Invalid variable validation condition :: The condition for variable "{0}" must refer to var.{0} in order to test
  incoming values.

duplicate variable = Duplicate variable declaration :: A variable named "{1}" was already declared at {0}. Variable
  names must be unique within a module.
duplicate local = Duplicate local value definition :: A local value named "{1}" was already defined at {0}. Local value
  names must be unique within a module.
duplicate output = Duplicate output definition :: An output named "{1}" was already defined at {0}. Output names must be
  unique within a module.
duplicate module = Duplicate module call :: A module call named "{1}" was already defined at {0}. Module calls must have
  unique names within a module.
duplicate provider = Duplicate provider configuration :: A default (non-aliased) provider configuration for "{1}" was
  already given at {0}. If multiple configurations are required, set the "alias" argument for alternative
  configurations.
duplicate required_providers = Duplicate required providers configuration :: A module may have only one required
  providers configuration. The required providers were previously configured at {0}.
duplicate backend = Duplicate backend configuration :: A module may have only one backend configuration. The backend was
  previously configured at {0}.
duplicate cloud = Duplicate HCP Terraform configurations :: A module may have only one 'cloud' block configuring HCP
  Terraform or Terraform Enterprise. The 'cloud' block was previously configured at {0}.
duplicate check = Duplicate check "{1}" configuration :: A check block named "{1}" was already declared at {0}. Check
  blocks must be unique within each module.
duplicate resource = Duplicate resource "{1}" configuration :: A {1} resource named "{2}" was already declared at {0}.
  Resource names must be unique per type in each module.
duplicate data = Duplicate data "{1}" configuration :: A {1} data resource named "{2}" was already declared at {0}.
  Resource names must be unique per type in each module.
duplicate ephemeral = Duplicate ephemeral "{1}" configuration :: A {1} ephemeral resource named "{2}" was already
  declared at {0}. Resource names must be unique per type in each module.

Reserved symbol name :: The symbol name "{}" is reserved for use in a future Terraform version. If you are using a
  provider that already uses this as a resource type name, add the prefix "resource." to force interpretation as a
  resource type name.
no attribute = Invalid reference :: The "{}" object cannot be accessed directly. Instead, access one of its attributes.
no operation = Invalid reference :: The "{}" object does not support this operation.
two names = Invalid reference :: The "{}" object must be followed by two attribute names: the {} and the resource name.
one name = Invalid reference :: A reference to a resource type must be followed by at least one attribute access,
  specifying the resource name.
undeclared var = Reference to undeclared input variable :: An input variable with the name "{}" has not been declared.{}
undeclared local = Reference to undeclared local value :: A local value with the name "{}" has not been declared.{}
undeclared module = Reference to undeclared module :: No module call named "{}" is declared in the root module.{}
Reference to undeclared resource :: {} resource "{}" "{}" has not been declared in the root module.{}
Self-referencing local value :: Local value local.{} cannot use its own result as part of its expression.
unknown builtin = Invalid "{}" attribute :: The "{0}" object does not have an attribute named "{1}".{2}
Invalid "terraform" attribute :: The terraform.env attribute was deprecated in v0.10 and removed in v0.12. The "state
  environment" concept was renamed to "workspace" in v0.12, and so the workspace name can now be accessed using the
  terraform.workspace attribute.
each.key = Reference to "each" in context without for_each :: The "each" object can be used only in "module" or
  "resource" blocks, and only when the "for_each" argument is set.
each.value = each.value cannot be used in this context :: A reference to "each.value" has been used in a context in
  which it is unavailable, such as when the configuration no longer contains the value in its "for_each" expression.
  Remove this reference to each.value in your configuration to work around this error.
count.index = Reference to "count" in non-counted context :: The "count" object can only be used in "module",
  "resource", and "data" blocks, and only when the "count" argument is set.
Invalid "self" reference :: The "self" object is not available in this context. This object can be used only in resource
  provisioner, connection, and postcondition blocks.
Invalid depends_on reference :: References in depends_on must be to a whole object (resource, etc), not to an attribute
  of an object.
Unexpected resource instance key :: Because {} does not have "count" or "for_each" set, references to it must not
  include an index key. Remove the bracketed index to refer to the single instance of this resource.
Missing resource instance key :: Because {0} has "{1}" set, its attributes must be accessed on specific
  instances.\n\nFor example, to correlate with indices of a referring resource, use:\n    {0}[{2}]
Invalid resource count attribute :: The special "count" attribute is no longer supported after Terraform v0.12. Instead,
  use length({}) to count resource instances.
of primitive = Unsupported attribute :: Can't access attributes on a primitive-typed value ({}).
of resource = Unsupported attribute :: This object has no argument, nested block, or exported attribute named "{}".{}
set of blocks = Cannot index a set value :: Block type "{}" is represented by a set of objects, and set elements do not
  have addressable keys. To find elements matching specific criteria, use a "for" expression with an "if" clause.
list of blocks = Invalid operation :: Block type "{0}" is represented by a list of objects, so it must be indexed using
  a numeric key, like .{0}[0].
of list = Unsupported attribute :: Can't access attributes on a {0}. Did you mean to access attribute "{1}" for a
  specific element of the list, or across all elements of the list?
of value = Unsupported attribute :: This value does not have any attributes.

unknown type = {0} :: The provider {1} does not support {2} "{3}".{4}
second block = Duplicate {} block :: Only one block of type "{0}" is allowed. Previous definition was at {1}.
too many blocks = Too many {} blocks :: No more than {1} "{0}" blocks are allowed
missing block = Missing {} block :: A block of type "{0}" is required here.
too few blocks = Insufficient {} blocks :: At least {1} "{0}" blocks are required.
one of = Invalid {} provisioner configuration :: Exactly one of {1} must be set.
Value for unconfigurable attribute :: Can't configure a value for "{}": its value will be decided automatically based on
  the result of applying this configuration.
Incorrect attribute value type :: Inappropriate value for attribute "{}": {}.
Missing content block :: A dynamic block must have a nested block of type "content" to describe the body of each block.
Invalid dynamic for_each value :: Cannot use a {} value in for_each. A collection is required.
null count = Invalid count argument :: The given "count" argument value is null. An integer is required.
negative count = Invalid count argument :: The given "count" argument value is unsuitable: must be a whole number, zero
  or greater.
Incorrect value type :: Invalid expression value: {}.
sensitive for_each = Invalid for_each argument :: Sensitive values, or values derived from sensitive values, cannot be
  used as for_each arguments. If used, the sensitive value could be exposed as a resource instance key.
null for_each = Invalid for_each argument :: The given "for_each" argument value is unsuitable: the given "for_each"
  argument value is null. A map, or set of strings is allowed.
for_each type = Invalid for_each argument :: The given "for_each" argument value is unsuitable: the "for_each" argument
  must be a map, or set of strings, and you have provided a value of type {}.
Output refers to sensitive values :: To reduce the risk of accidentally exporting sensitive data that was intended to be
  only internal, Terraform requires that any root module output containing sensitive data be explicitly marked as
  sensitive, to confirm your intent.

no type = Invalid type specification :: A type specification is either a primitive type keyword (bool, number, string)
  or a complex type constructor call, like list(string).
no type word = Invalid type specification :: The keyword "{}" is not a valid type specification.
no constructor = Invalid type specification :: Keyword "{}" is not a valid type constructor.
element type = Invalid type specification :: The {} type constructor requires one argument specifying the element type.
object type = Invalid type specification :: The object type constructor requires one argument specifying the attribute
  types and values as a map.
tuple type = Invalid type specification :: The tuple type constructor requires one argument specifying the element types
  as a list.
primitive type = Invalid type specification :: Primitive type keyword "{}" does not expect arguments.
optional type = Invalid type specification :: Keyword "optional" is valid only as a modifier for object type attributes.
optional argument = Invalid type specification :: Optional attribute modifier requires the attribute type as its
  argument.
optional arguments = Invalid type specification :: Optional attribute modifier expects at most two arguments: the
  attribute type, and a default value.
keys of type = Invalid type specification :: Object constructor map keys must be unique.

Call to unknown function :: There is no function named "{}"{}
Not enough function arguments :: Function "{}" expects {}{} argument(s). Missing value for "{}".
Error in function call :: Call to function "{}" failed: {}.
Too many function arguments :: Function "{}" expects only {} argument(s).
Invalid expanding argument value :: The expansion symbol ... must be followed by a list or tuple.
Invalid function argument :: Invalid value for "{}" parameter: {}.
Invalid template interpolation value :: Cannot include the given value in a string template: string required.
Iteration over non-iterable value :: A value of type {} cannot be used as the collection in a 'for' expression.
Invalid 'for' condition :: The 'if' clause value is invalid: {}.
Inconsistent conditional result types :: The true and false result expressions must have consistent types.
Operation failed :: Error during operation: argument must not be null.
Incorrect condition type :: Unsuitable value: {}.
Invalid operand :: Unsuitable value: {}.
no member = Unsupported attribute :: This object does not have an attribute named "{}".
no index member = Invalid index :: This object does not have an attribute named "{}".
index of set = Invalid index :: Elements of a set are identified only by their value and don't have any separate index
  or key.
number of object = Invalid index :: The given key does not identify an element in this collection value. An object only
  supports looking up attributes by name, not by numeric index.
no indices = Invalid index :: This value does not have any indices.
no element = Invalid index :: The given key does not identify an element.
index type = Invalid index :: The given key does not identify an element: {}.
"""
_ENTRY = re.compile(r"^(?:(.+?) = )?(\S.*?) :: (.*(?:\n  .*)*)$", re.MULTILINE)


MESSAGES = {
    key or summary: (summary, " ".join(detail.split("\n  ")).replace(r"\n", "\n"))
    for key, summary, detail in _ENTRY.findall(_TABLE)
}
