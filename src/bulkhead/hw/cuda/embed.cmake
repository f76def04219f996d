# Writes the text in PTX as the constant NAME of C++ source OUT.
file(READ ${PTX} text)
string(REPLACE ")ptx\"" "" text "${text}")
file(WRITE ${OUT} "namespace bulkhead::cuda {\nextern const char* const ${NAME};\nconst char* const ${NAME} = R\"ptx(${text})ptx\";\n}\n")
